/* SPDX-License-Identifier: Apache-2.0
 *
 * The C interface of the OTF runtime: open a plan, make sessions over it, run them.
 *
 * Ownership. A plan is the file in memory together with its weights on the devices that were asked
 * for; it does not change after it was opened. A session is one conversation: its inputs, its
 * scratch memory and its states (the cache of a language model). Whoever opens a plan closes it and
 * whoever creates a session destroys it, in any order: a session keeps what it needs of its plan.
 * Everything given to a function is copied before it returns. Everything a function hands out
 * belongs to the plan or the session, and is valid until that is closed; an output's shape and
 * data only until the next call for the same session.
 *
 * Threads. Any number of threads may use one plan. A session is used by one thread at a time.
 *
 * Failure. A function that can fail returns a status, and otf_message() then has one sentence for
 * people. Handing in NULL where an object is expected is OTF_USAGE. The functions that free
 * something cannot fail and accept NULL. No exception leaves this library.
 */
#ifndef OTF_OTF_H
#define OTF_OTF_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum otf_status {
  OTF_OK = 0,
  OTF_BAD_INPUT = 1, /* the plan, a tensor or a text is wrong: another one will work */
  OTF_USAGE = 2,     /* the call is wrong: an unknown device, an output before a run */
  OTF_DEVICE = 3     /* no such device, driver or instruction set here, or not enough memory */
} otf_status;

/* Why the last call on this thread that did not return OTF_OK failed. Valid until the next failing
 * call on this thread. Never NULL. */
const char *otf_message(void);

/* As in plan.fbs. A boolean is one byte, and so is each element of the types after it; those of
 * fewer bits are in the low ones. */
typedef enum otf_type {
  OTF_F32, OTF_F16, OTF_BF16, OTF_F64, OTF_I8, OTF_U8, OTF_I16, OTF_U16, OTF_I32, OTF_U32, OTF_I64,
  OTF_U64, OTF_BOOL,
  OTF_F8E4M3FN, OTF_F8E4M3FNUZ, OTF_F8E5M2, OTF_F8E5M2FNUZ, OTF_F8E8M0, OTF_F4E2M1, OTF_I4, OTF_U4,
  OTF_I2, OTF_U2
} otf_type;

/* -- Plans ---------------------------------------------------------------------------------- */

typedef struct otf_plan otf_plan;

/* Maps and verifies a plan. A plan contains native code: open only plans that you trust. */
otf_status otf_plan_open(const char *path, otf_plan **plan);
void otf_plan_close(otf_plan *plan);

/* What a model takes and gives. */
typedef struct otf_tensor_info {
  const char *name;
  otf_type type;
  size_t rank;
} otf_tensor_info;

size_t otf_plan_input_count(const otf_plan *plan);
size_t otf_plan_output_count(const otf_plan *plan);
size_t otf_plan_state_count(const otf_plan *plan);
otf_status otf_plan_input(const otf_plan *plan, size_t index, otf_tensor_info *info);
otf_status otf_plan_output(const otf_plan *plan, size_t index, otf_tensor_info *info);
/* The extent of an axis when it is the same in every run, else -1. */
int64_t otf_plan_input_extent(const otf_plan *plan, size_t index, size_t axis);
int64_t otf_plan_output_extent(const otf_plan *plan, size_t index, size_t axis);

/* -- Sessions ------------------------------------------------------------------------------- */

typedef struct otf_session otf_session;

typedef struct otf_session_options {
  const char *device; /* "cpu", "cpu:avx2", "cuda", "cuda:1"; NULL means "cpu" */
  unsigned threads;   /* of the CPU; 0 means one for each available core */
  int64_t capacity;   /* positions the states have room for; 0 means the model's context, or 4096
                         where that is longer */
} otf_session_options;

/* `options` may be NULL. */
otf_status otf_session_create(otf_plan *plan, const otf_session_options *options,
                              otf_session **session);
void otf_session_destroy(otf_session *session);

/* Copies a dense row-major tensor. It stays until it is set again. A state of the model may be set
 * like an input, for the next run only; then all of them must be. */
otf_status otf_session_set_input(otf_session *session, const char *name, otf_type type,
                                 const int64_t *shape, size_t rank, const void *data);
otf_status otf_session_run(otf_session *session);

typedef struct otf_tensor {
  otf_type type;
  size_t rank;
  const int64_t *shape;
  const void *data;
} otf_tensor;

/* An output of the last run, or a state under the name the model gives it as an output. */
otf_status otf_session_get_output(otf_session *session, const char *name, otf_tensor *tensor);

/* How many positions the states hold; a run appends to them. */
int64_t otf_session_state_length(const otf_session *session);
/* Forgets the positions from `length` on; 0 starts anew. */
otf_status otf_session_state_truncate(otf_session *session, int64_t length);
otf_status otf_session_state_reset(otf_session *session);

/* -- Text ----------------------------------------------------------------------------------- */

typedef struct otf_chat_message {
  const char *role; /* "system", "user" or "assistant" */
  const char *content;
} otf_chat_message;

/* Give one of prompt, prompt_ids and messages. Fill the rest with otf_generate_options_init(). */
typedef struct otf_generate_options {
  const char *prompt; /* a text to continue */
  const int32_t *prompt_ids;
  size_t prompt_id_count;
  const otf_chat_message *messages; /* a conversation to answer, by the model's chat template */
  size_t message_count;

  int64_t max_tokens;
  float temperature; /* 0 takes the likeliest token always */
  int32_t top_k;     /* 0 keeps all */
  float top_p;       /* 1 keeps all */
  float min_p;       /* 0 keeps all */
  float repetition_penalty;
  int32_t no_repeat_ngram; /* 0 allows all */
  uint64_t seed;
  const char *const *stops; /* texts that end the answer and do not belong to it */
  size_t stop_count;
  int ignore_end; /* goes on after the model's end token */
} otf_generate_options;

/* 256 tokens, the likeliest each time, nothing penalised. */
void otf_generate_options_init(otf_generate_options *options);

/* Called for each token with the text that became certain with it (UTF-8, `size` bytes, perhaps
 * none), and at the end with id -1 and the rest. Not 0 ends the generation. It must not use the
 * session. */
typedef int (*otf_text_callback)(void *user, const char *text, size_t size, int32_t id);

typedef struct otf_generation {
  const int32_t *ids; /* with the end token when there was one */
  size_t id_count;
  const char *text; /* the whole of it, zero-terminated; empty when the plan has no tokenizer */
  size_t text_size;
  const char *reason; /* why it ended: "end", "stop", "length", "context" or "caller" */
  double prefill_seconds, decode_seconds;
} otf_generation;

/* Continues a text with a language model. The states may hold the beginning of it, from an earlier
 * call: that part is not computed again. `callback` and `result` may be NULL. */
otf_status otf_generate(otf_session *session, const otf_generate_options *options,
                        otf_text_callback callback, void *user, otf_generation *result);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* OTF_OTF_H */
