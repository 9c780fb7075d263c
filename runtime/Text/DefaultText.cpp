// SPDX-License-Identifier: Apache-2.0
//
// What a model reads where its user gives no text: several registers, a table, code and another language, so that most channels
// are met once. It is too little for products of channels, and calibration says so.
#include "runtime/Text/DefaultText.h"

namespace otf::text {

static constexpr char text[] = R"text(The river leaves the hills a little above the old mill, turns twice through meadows, and then runs straight for nine miles until it
meets the sea. In spring the water is brown and quick; by August a child can wade across it. Along the left bank there is a path, which in
earlier days horses used when they drew barges upstream. Most of the barges carried lime, timber and grain. When the railway came in 1846,
the trade on the water fell away within ten years, and the locks were left to rust. Today the path belongs to walkers, and on Sundays to cyclists.

"Did you remember the key?" she asked. He had not. They stood at the gate and looked at each other, and then both began to laugh, because
it was raining and there was nothing else to do. "We could ask your sister," he said at last. "She is never at home before seven," she
answered, "and she would never let us forget it." So they walked back to the station, bought two cups of tea, and waited.

To make a plain loaf, mix 500 grams of flour with 350 grams of water, 10 grams of salt and 5 grams of dry yeast. Knead the dough for ten
minutes, cover it, and let it rise until it has doubled in size. Shape it, let it rise once more for forty minutes, and bake it at 230
degrees: twenty minutes with steam, then twenty without. It is done when it sounds hollow. Do not cut it while it is hot.

A compiler reads a program in one language and writes it in another. It does so in stages. The first finds words and signs; the second finds out how
they belong together; later ones know what the names mean, remove work that need not be done, and choose instructions. Each stage has its own
picture of the program, and what makes a compiler easy to change is that these pictures are simple and that no stage knows more than it needs to. An
error is reported where the person who wrote the program can mend it, in words that say what was expected and what was found.

def mean(values):
    """The arithmetic mean; an empty list has none."""
    if not values:
        raise ValueError("mean of nothing")
    return sum(values) / len(values)

for name, scores in {"anna": [3, 5, 4], "ben": [2, 2, 6]}.items():
    print(f"{name}: {mean(scores):.2f}")

int count(const char *text, char wanted) {
  int n = 0;
  for (; *text != '\0'; ++text)
    if (*text == wanted)
      n += 1;
  return n;
}

| planet  | radius (km) | day (hours) | moons |
| ------- | ----------- | ----------- | ----- |
| Mercury |       2,440 |       4,223 |     0 |
| Venus   |       6,052 |       2,802 |     0 |
| Earth   |       6,371 |        24.0 |     1 |
| Mars    |       3,390 |        24.7 |     2 |

Question: A train leaves at 9:40 and travels 126 kilometres at an average speed of 84 kilometres an hour. When does it arrive?
Answer: 126 / 84 = 1.5, so the journey takes one hour and thirty minutes. The train arrives at 11:10.

Question: Which is larger, three eighths or two fifths?
Answer: 3/8 = 0.375 and 2/5 = 0.4, so two fifths is larger.

Die Bibliothek ist montags geschlossen. An den anderen Tagen kann man von neun bis achtzehn Uhr lesen, und wer einen Ausweis hat, darf bis zu
zehn Bücher mit nach Hause nehmen. Le musée se trouve au bord du lac, à dix minutes de la gare; l'entrée est gratuite le premier dimanche du mois.
La lluvia empezó por la tarde y no paró en toda la noche, pero por la mañana el cielo estaba limpio y las calles brillaban.

The heart is a muscle with four chambers. Blood from the body enters the right atrium, passes into the right ventricle and is pumped to the
lungs, where it takes up oxygen and gives off carbon dioxide. It returns to the left atrium, and the left ventricle, which has the thickest
wall, sends it round the body. Valves between the chambers open in one direction only. A resting adult's heart beats sixty to eighty
times a minute, which is about a hundred thousand times a day.

Dear Ms Okafor, thank you for your letter of 12 March. I am sorry that the parcel reached you late and that one of the cups was broken. We have sent a new
one today, at no cost to you, and it should arrive by Friday. If you would rather have your money back, please tell us. Yours sincerely, T. Lindqvist.

In mathematics, a group is a set together with an operation that combines any two of its elements into a third, such that the operation is
associative, there is an element that changes nothing, and every element has an inverse. The integers with addition are a group; so are the
rotations of a cube, of which there are twenty-four. If the order of two elements never matters, the group is called commutative.

The council met on Tuesday to discuss the new bridge. Supporters said that it would shorten the way to school for six hundred children; others
were concerned about the cost, which has risen from 4.1 to 5.6 million since the first estimate. A decision was put off until June. Meanwhile the
ferry will run every twenty minutes between six in the morning and ten at night.
)text";

std::string_view defaultText() { return {text, sizeof text - 1}; }

} // namespace otf::text
