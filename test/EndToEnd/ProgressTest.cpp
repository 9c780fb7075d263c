// SPDX-License-Identifier: Apache-2.0
//
// The line that long work draws.

#include "lib/Compile/Progress.h"

#include <gtest/gtest.h>

using otf::Progress;

TEST(Progress, SaysWhereAndHowLong) {
  EXPECT_EQ(Progress::line("encoding weights", "/layers.3/up_proj", 25, 100, 50),
            "encoding weights [#######.......................]  25 %, 2 min 30 s left  /layers.3/up_proj");
  EXPECT_EQ(Progress::line("a", "", 10, 1000000, 100), "a [..............................]   0 %"); // too early to say
  EXPECT_EQ(Progress::line("a", "", 50, 100, 1), "a [###############...............]  50 %");
  EXPECT_EQ(Progress::line("a", "", 100, 100, 60), "a [##############################] 100 %");
  EXPECT_EQ(Progress::line("reading", "", 0, 0, 60), "reading ...");
}

TEST(Progress, HoursAreHours) {
  EXPECT_NE(Progress::line("a", "", 10, 100, 1000).find("2 h 30 min left"), std::string::npos);
}

TEST(Progress, ALongNameKeepsItsEnd) {
  std::string line = Progress::line("a", std::string(100, 'x') + "/mlp/up_proj", 1, 2, 1);
  EXPECT_NE(line.find("xxx/mlp/up_proj"), std::string::npos);
  EXPECT_LT(line.size(), 100u);
}
