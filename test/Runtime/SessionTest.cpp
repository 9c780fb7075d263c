// SPDX-License-Identifier: Apache-2.0
//
// The test plan (TestPlan.h) from file to numbers.
#include "runtime/Decoder.h"
#include "runtime/Session.h"
#include "test/Runtime/TestPlan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>
#include <unistd.h>

using namespace otf::runtime;
namespace model = otf::plan::model;

namespace {

struct Opened {
  explicit Opened(const model::Plan &plan, SessionOptions options = {}) {
    char path[] = "/tmp/otf-session-XXXXXX";
    close(mkstemp(path));
    EXPECT_TRUE(otf::test::writePlan(path, plan));
    auto read = PlanFile::open(path);
    unlink(path);
    status = read.status();
    if (!read.ok())
      return;
    file = std::move(read.value());
    auto made = makeDevice(*file, "cpu");
    status = made.status();
    if (!made.ok())
      return;
    device = std::move(made.value());
    session = std::move(Session::create(*file, *device, options).value());
  }
  Status set(std::string_view name, std::vector<int64_t> shape, float value = 1) {
    std::vector<float> data(4096, value);
    return session->setInput(name, {ElementType::f32, shape, data.data()});
  }
  float y(size_t row, size_t column) {
    auto view = session->output(0).value();
    return static_cast<const float *>(view.data)[row * 4 + column];
  }
  Status status;
  std::unique_ptr<PlanFile> file;
  std::unique_ptr<Device> device;
  std::unique_ptr<Session> session;
};

model::Plan plan() { return otf::test::testPlan(otf::test::testKernels().size()); }

TEST(Session, StateGrowsFromRunToRun) {
  for (unsigned threads : {1u, 2u, 5u}) {
    Opened o(plan(), {.threads = threads, .capacity = 64});
    ASSERT_TRUE(o.status.ok()) << o.status.message();
    ASSERT_TRUE(o.set("x", {50, 4}).ok());
    ASSERT_TRUE(o.session->run().ok());
    for (size_t i = 0; i < 50; ++i)
      EXPECT_EQ(o.y(i, 2), 3 + 6 * float(i + 1));
    for (int k = 51; k <= 64; ++k) {
      ASSERT_TRUE(o.set("x", {1, 4}).ok());
      ASSERT_TRUE(o.session->run().ok());
      EXPECT_EQ(o.y(0, 0), 1 + 6 * float(k));
      EXPECT_EQ(o.session->stateLength(), k);
    }
    Status full = o.session->run();
    EXPECT_EQ(full.message(), "context: 64 positions and 1 more do not fit in 64 (ask for a larger "
                              "context, or start anew)");
    EXPECT_EQ(o.session->stateLength(), 64);
  }
}

TEST(Session, StatesMayBeGivenAndReadBack) {
  Opened o(plan(), {.threads = 2, .capacity = 2});
  ASSERT_TRUE(o.set("x", {1, 4}).ok());
  ASSERT_TRUE(o.set("past.0", {2, 3, 4}, 10).ok()); // more than the capacity: it grows
  ASSERT_TRUE(o.session->run().ok());
  EXPECT_EQ(o.y(0, 0), 1 + 60 + 6);
  EXPECT_EQ(o.session->stateLength(), 4);
  auto state = o.session->output(*o.session->findOutput("present.0")).value();
  EXPECT_EQ(std::vector<int64_t>(state.shape.begin(), state.shape.end()),
            (std::vector<int64_t>{2, 4, 4}));
  auto *data = static_cast<const float *>(state.data);
  EXPECT_EQ(data[0], 10);
  EXPECT_EQ(data[3 * 4], 2);      // row 0, position 3
  EXPECT_EQ(data[4 * 4], 10);     // row 1, position 0
  EXPECT_EQ(data[(4 + 3) * 4], 4);
}

/// The test plan with the names of what its first and last steps write.
model::Plan namedPlan() {
  model::Plan named = plan();
  const std::vector<model::Size> shape = {model::Size::symbol(2), model::Size::constant(4)};
  for (auto [step, name] : {std::pair(0, "doubled"), {2, "summed"}}) {
    named.programs[0].steps[size_t(step)].written = 1;
    named.programs[0].steps[size_t(step)].results = {{name, model::ElementType::f32, shape, 0}};
  }
  return named;
}

/// Writes down what it sees, and makes `changed` zero.
struct Observer : StepObserver {
  Status see(const StepValue &value) override {
    auto *data = static_cast<float *>(value.data);
    seen.push_back({std::string(value.info.name), value.step, {value.shape.begin(), value.shape.end()}, data[0]});
    if (value.info.name == changed)
      std::fill_n(data, value.shape[0] * value.shape[1], 0.0f);
    return seen.size() == failAt ? badInput("enough") : Status();
  }
  using Seen = std::tuple<std::string, size_t, std::vector<int64_t>, float>;
  std::vector<Seen> seen;
  std::string changed;
  size_t failAt = 0;
};

TEST(Observer, SeesWhatStepsWrite) {
  for (unsigned threads : {1u, 3u}) {
    Opened o(namedPlan(), {.threads = threads});
    ASSERT_TRUE(o.status.ok()) << o.status.message();
    Observer observer;
    ASSERT_TRUE(o.session->observe(&observer).ok());
    ASSERT_TRUE(o.set("x", {30, 4}).ok());
    ASSERT_TRUE(o.session->run().ok());
    EXPECT_EQ(observer.seen, (std::vector<Observer::Seen>{{"doubled", 0, {30, 4}, 2}, {"summed", 2, {30, 4}, 7}}));
    EXPECT_EQ(o.y(29, 2), 3 + 6 * 30.0f);
    ASSERT_TRUE(o.session->observe(nullptr).ok());
    ASSERT_TRUE(o.session->run().ok());
    EXPECT_EQ(observer.seen.size(), 2u);
  }
}

TEST(Observer, MayChangeWhatLaterStepsRead) {
  Opened o(namedPlan());
  Observer observer;
  observer.changed = "doubled";
  ASSERT_TRUE(o.session->observe(&observer).ok());
  ASSERT_TRUE(o.set("x", {3, 4}).ok());
  ASSERT_TRUE(o.session->run().ok());
  EXPECT_EQ(o.y(2, 2), 3);
}

TEST(Observer, MayEndTheRun) {
  Opened o(namedPlan());
  Observer observer;
  observer.failAt = 1;
  ASSERT_TRUE(o.session->observe(&observer).ok());
  ASSERT_TRUE(o.set("x", {3, 4}).ok());
  EXPECT_EQ(o.session->run().message(), "enough");
  EXPECT_EQ(observer.seen.size(), 1u);
  EXPECT_FALSE(o.session->output(0).ok());
}

TEST(Observer, NeedsAPlanThatNamesItsValues) {
  Opened o(plan());
  Observer observer;
  EXPECT_EQ(o.session->observe(&observer).message(),
            "the plan does not name what its steps write (compile the model again)");
  EXPECT_TRUE(o.session->observe(nullptr).ok());
}

TEST(Observer, AValueThatItsBufferCannotHoldIsRefused) {
  model::Plan wrong = namedPlan();
  wrong.programs[0].steps[0].results[0].shape.push_back(model::Size::constant(3));
  Opened o(wrong);
  Observer observer;
  ASSERT_TRUE(o.session->observe(&observer).ok());
  ASSERT_TRUE(o.set("x", {3, 4}).ok());
  EXPECT_NE(o.session->run().message().find("does not fit in its buffer"), std::string::npos);
}

TEST(Observer, ResultsAreAsManyAsAreWritten) {
  model::Plan wrong = namedPlan();
  wrong.programs[0].steps[0].results.push_back(wrong.programs[0].steps[0].results[0]);
  EXPECT_NE(Opened(wrong).status.message().find("writes 1 buffers and names 2"), std::string::npos);
}

TEST(Decoder, ReadsAWholeTextInOneRun) {
  Opened o(otf::test::languagePlan(otf::test::testKernels().size()));
  ASSERT_TRUE(o.status.ok()) << o.status.message();
  auto decoder = std::move(Decoder::create(*o.session).value());
  for (int32_t n : {5, 3, 900}) { // longer than a chunk of a prompt; each begins anew
    std::vector<int32_t> ids;
    for (int32_t i = 0; i < n; ++i)
      ids.push_back(i * 7 % 16);
    auto logits = decoder->readAll(ids);
    ASSERT_TRUE(logits.ok()) << logits.status().message();
    ASSERT_EQ(logits.value().size(), size_t(n) * 16);
    int32_t sum = 0;
    for (int32_t i = 0; i < n; ++i) {
      sum += ids[size_t(i)];
      auto row = logits.value().subspan(size_t(i) * 16, 16);
      EXPECT_EQ(std::max_element(row.begin(), row.end()) - row.begin(), (i + n + sum) % 16); // as test_logits says
    }
    EXPECT_EQ(o.session->stateLength(), n);
  }
}

TEST(Decoder, RefusesAModelThatGivesOneRowOfLogits) {
  model::Plan last = otf::test::languagePlan(otf::test::testKernels().size());
  last.outputs[0].shape[1] = model::Size::constant(1);
  last.programs[0].steps[1].extent = model::Size::constant(1);
  Opened o(last);
  ASSERT_TRUE(o.status.ok()) << o.status.message();
  auto decoder = std::move(Decoder::create(*o.session).value());
  const int32_t ids[] = {1, 2, 3};
  EXPECT_NE(decoder->readAll(ids).status().message().find("has 1 rows for 3 tokens"), std::string::npos);
}

TEST(Session, AnEmptyStateMayBeGiven) {
  Opened o(plan());
  ASSERT_TRUE(o.set("x", {2, 4}).ok());
  ASSERT_TRUE(o.set("past.0", {2, 0, 4}).ok());
  ASSERT_TRUE(o.session->run().ok());
  EXPECT_EQ(o.y(1, 0), 1 + 12);
}

TEST(Session, ARunForStatesLeavesOutWhatOnlyOutputsNeed) {
  model::Plan twice = plan();
  model::Program &cpu = twice.programs[0];
  const model::Step step = cpu.steps[0]; // slot 0 = 2 x, which the state needs
  cpu.steps[0].written = 1;
  cpu.slots.push_back(cpu.slots[0]);
  twice.outputs.push_back({"z", model::ElementType::f32, twice.outputs[0].shape});
  auto doubled = [&](model::Buffer from, model::Buffer to) {
    model::Step one = step;
    one.buffers = {from, to};
    one.written = 1;
    cpu.steps.push_back(one);
  };
  doubled({model::Space::input, 0, 0}, {model::Space::slot, 0, 0}); // the same slot again, which nobody but z needs now
  doubled({model::Space::slot, 0, 0}, {model::Space::slot, 1, 0});
  doubled({model::Space::slot, 1, 0}, {model::Space::output, 1, 0});
  Opened o(twice, {.threads = 2, .capacity = 64});
  ASSERT_TRUE(o.status.ok()) << o.status.message();
  std::vector<StepEvent> events;
  o.session->timeSteps(&events);
  auto ran = [&] {
    std::vector<size_t> steps;
    for (const StepEvent &event : events)
      steps.push_back(event.step);
    events.clear();
    return steps;
  };
  ASSERT_TRUE(o.set("x", {7, 4}).ok());
  ASSERT_TRUE(o.session->runForStates().ok());
  EXPECT_EQ(ran(), (std::vector<size_t>{0, 1, 2})); // the third has a state, which it might write
  EXPECT_EQ(o.session->stateLength(), 7);
  EXPECT_FALSE(o.session->output(1).ok());
  ASSERT_TRUE(o.set("x", {1, 4}).ok());
  ASSERT_TRUE(o.session->run().ok());
  EXPECT_EQ(ran(), (std::vector<size_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(o.y(0, 0), 1 + 6 * 8.0f);
  EXPECT_EQ(static_cast<const float *>(o.session->output(1).value().data)[0], 8);
}

TEST(Session, TruncatedStatesForget) {
  Opened o(plan());
  ASSERT_TRUE(o.set("x", {3, 4}).ok());
  ASSERT_TRUE(o.session->run().ok());
  ASSERT_TRUE(o.session->truncateStates(1).ok());
  EXPECT_FALSE(o.session->truncateStates(2).ok());
  ASSERT_TRUE(o.set("x", {1, 4}).ok());
  ASSERT_TRUE(o.session->run().ok());
  EXPECT_EQ(o.y(0, 0), 1 + 12);
}

TEST(Session, SessionsOfOneDeviceAreApart) {
  Opened o(plan());
  auto second = std::move(Session::create(*o.file, *o.device, {}).value());
  ASSERT_TRUE(o.set("x", {3, 4}).ok());
  ASSERT_TRUE(o.session->run().ok());
  const float x[4] = {1, 1, 1, 1};
  const int64_t shape[2] = {1, 4};
  ASSERT_TRUE(second->setInput("x", {ElementType::f32, shape, x}).ok());
  ASSERT_TRUE(second->run().ok());
  EXPECT_EQ(second->stateLength(), 1);
  EXPECT_EQ(o.session->stateLength(), 3);
}

TEST(Session, WrongInputsAreNamed) {
  Opened o(plan());
  EXPECT_EQ(o.set("z", {1, 4}).message(),
            "input 'z': the model has none of this name (it has x, past.0)");
  const int64_t shape[2] = {1, 4};
  int64_t numbers[4] = {};
  EXPECT_EQ(o.session->setInput("x", {ElementType::i64, shape, numbers}).message(),
            "input 'x': expected elements of type f32, found i64");
  EXPECT_EQ(o.set("x", {4}).message(), "input 'x': expected 2 axes [length, 4], found 1");
  EXPECT_EQ(o.session->run().message(), "input 'x': missing (the model needs x, past.0)");
  ASSERT_TRUE(o.set("x", {1, 5}).ok());
  EXPECT_EQ(o.session->run().message(), "input 'x': expected 4 on axis 1, found 5");
  EXPECT_FALSE(o.session->output(0).ok());
}

TEST(Session, ALimitedInputIsCheckedAgainstItsTable) {
  for (model::ElementType type : {model::ElementType::i64, model::ElementType::i32}) {
    model::Plan limited = otf::test::languagePlan(otf::test::testKernels().size());
    limited.inputs[0].limit = 16;
    limited.inputs[0].type = type;
    Opened o(limited);
    ASSERT_TRUE(o.status.ok()) << o.status.message();
    auto set = [&](int64_t value) {
      const int64_t shape[] = {1, 3}, wide[] = {-16, 15, value};
      const int32_t narrow[] = {-16, 15, int32_t(value)};
      bool isWide = type == model::ElementType::i64;
      return o.session->setInput("input_ids", {isWide ? ElementType::i64 : ElementType::i32, shape,
                                               isWide ? (const void *)wide : narrow});
    };
    EXPECT_TRUE(set(0).ok());
    EXPECT_EQ(set(16).message(), "input 'input_ids': the index 16 at position 2 is out of bounds "
                                 "(expected -16 to 15)");
    EXPECT_FALSE(set(-17).ok());
  }
  model::Plan floats = plan();
  floats.inputs[0].limit = 4;
  EXPECT_NE(Opened(floats).status.message().find("has the limit 4"), std::string::npos);
}

TEST(Session, AnEndlessStateOfNoBatchIsRefused) {
  model::Plan batched = plan();
  batched.symbols.push_back("batch");
  batched.states[0].shape[0] = model::Size::symbol(3);
  Opened o(batched);
  ASSERT_TRUE(o.status.ok()) << o.status.message();
  ASSERT_TRUE(o.set("x", {1, 4}).ok());
  ASSERT_TRUE(o.set("past.0", {0, INT64_MAX, 4}).ok());
  EXPECT_EQ(o.session->run().message(),
            "context: states of 9223372036854775807 positions are not possible");
}

TEST(Session, NoRowsIsARunWithoutWork) {
  Opened o(plan());
  ASSERT_TRUE(o.set("x", {0, 4}).ok());
  ASSERT_TRUE(o.session->run().ok());
  EXPECT_EQ(o.session->output(0).value().shape[0], 0);
}

TEST(Session, AMissingKernelIsNamed) {
  model::Plan p = plan();
  p.programs[0].steps[1].kernel = "not_there";
  EXPECT_NE(Opened(p).status.message().find("kernel 'not_there': missing"), std::string::npos);
}

TEST(Session, CodeForAnotherMachineIsRefused) {
  model::Plan p = plan();
  p.objects[0].level = "sve2";
  EXPECT_EQ(Opened(p).status.code(), Code::device);
  p.programs[0].target = "cuda";
  p.programs[0].steps.clear();
  EXPECT_EQ(Opened(p).status.code(), Code::device);
}

TEST(Session, TwoPlansMayBeLoadedAtOnce) {
  Opened a(plan()), b(plan());
  ASSERT_TRUE(a.set("x", {1, 4}).ok() && b.set("x", {2, 4}).ok());
  EXPECT_TRUE(a.session->run().ok() && b.session->run().ok());
  EXPECT_EQ(b.y(1, 0), 13);
}

} // namespace
