/* SPDX-License-Identifier: Apache-2.0
 *
 * The C interface from C: open, run twice with a growing state, read back, fail with a sentence. */
#include "include/otf/otf.h"
#include "test/Runtime/TestPlan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, otf_message());           \
      return 1;                                                                                    \
    }                                                                                              \
  } while (0)

int main(void) {
  char path[] = "/tmp/otf-capi-XXXXXX";
  CHECK(close(mkstemp(path)) == 0 && otf_write_test_plan(path));

  otf_plan *plan = NULL;
  CHECK(otf_plan_open("/nowhere/at-all.plan", &plan) == OTF_BAD_INPUT && plan == NULL);
  CHECK(strstr(otf_message(), "/nowhere/at-all.plan") != NULL);
  CHECK(otf_plan_open(path, &plan) == OTF_OK);
  unlink(path);
  CHECK(otf_plan_input_count(plan) == 1 && otf_plan_state_count(plan) == 1);
  otf_tensor_info info;
  CHECK(otf_plan_input(plan, 0, &info) == OTF_OK && strcmp(info.name, "x") == 0 && info.rank == 2);
  CHECK(otf_plan_input_extent(plan, 0, 0) == -1 && otf_plan_input_extent(plan, 0, 1) == 4);

  otf_session *session = NULL;
  otf_session_options options = {"abacus", 1, 0};
  CHECK(otf_session_create(plan, &options, &session) == OTF_USAGE);
  options.device = "cpu";
  CHECK(otf_session_create(plan, &options, &session) == OTF_OK);
  otf_plan_close(plan); /* before its session: allowed */

  otf_tensor y;
  CHECK(otf_session_get_output(session, "y", &y) == OTF_USAGE);
  CHECK(otf_session_run(session) == OTF_BAD_INPUT && strstr(otf_message(), "'x': missing"));
  const float x[12] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  const int64_t three[2] = {3, 4}, one[2] = {1, 4};
  CHECK(otf_session_set_input(session, "x", OTF_F32, three, 2, x) == OTF_OK);
  CHECK(otf_session_run(session) == OTF_OK && otf_session_state_length(session) == 3);
  CHECK(otf_session_set_input(session, "x", OTF_F32, one, 2, x) == OTF_OK);
  CHECK(otf_session_run(session) == OTF_OK && otf_session_state_length(session) == 4);
  CHECK(otf_session_get_output(session, "y", &y) == OTF_OK);
  CHECK(y.rank == 2 && y.shape[0] == 1 && y.shape[1] == 4);
  for (int c = 0; c < 4; ++c)
    CHECK(((const float *)y.data)[c] == (float)(c + 1 + 6 * 4));
  CHECK(otf_session_state_reset(session) == OTF_OK && otf_session_state_length(session) == 0);
  otf_session_destroy(session);
  otf_session_destroy(NULL);
  otf_plan_close(NULL);
  puts("ok");
  return 0;
}
