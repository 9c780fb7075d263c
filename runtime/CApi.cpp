// SPDX-License-Identifier: Apache-2.0
//
// include/otf/otf.h on top of the C++ classes. A plan's parts are shared by pointer, so that plan
// and sessions may go in any order.
#include "include/otf/otf.h"

#include "runtime/Generate.h"
#include "runtime/Session.h"

#include <map>
#include <mutex>

using namespace otf::runtime;

static_assert(int(OTF_BOOL) == int(ElementType::boolean) && int(OTF_U2) == int(ElementType::u2) && int(OTF_F64) == int(ElementType::f64));
static_assert(int(OTF_BAD_INPUT) == int(Code::badInput) && int(OTF_USAGE) == int(Code::usage) &&
              int(OTF_DEVICE) == int(Code::device));

namespace {

struct SharedPlan {
  std::unique_ptr<PlanFile> file;
  std::mutex mutex; // of the two below, which are made when they are first needed
  std::map<std::string, std::unique_ptr<Device>, std::less<>> devices;
  std::optional<LanguageModel> language;
};

thread_local std::string message;

otf_status report(const Status &status) {
  if (!status.ok())
    message = status.message();
  return otf_status(status.code());
}

otf_status missing(const char *what) {
  return report(usageError(what, ": NULL, expected an object"));
}

int64_t extent(const PlanFile &plan, const std::vector<TensorInfo> &tensors, size_t index,
               size_t axis) {
  if (index >= tensors.size() || axis >= tensors[index].shape.size())
    return -1;
  const Polynomial &size = plan.sizes[tensors[index].shape[axis]];
  if (size.empty())
    return 0;
  return size.size() == 1 && size[0].symbols.empty() ? size[0].coefficient : -1;
}

otf_status info(const std::vector<TensorInfo> &tensors, size_t index, otf_tensor_info *info) {
  if (!info)
    return missing("info");
  if (index >= tensors.size())
    return report(usageError("index ", index, ": the plan has ", tensors.size()));
  // Names come from FlatBuffers strings, which end with a zero.
  *info = {tensors[index].name.data(), otf_type(tensors[index].type), tensors[index].shape.size()};
  return OTF_OK;
}

} // namespace

struct otf_plan {
  std::shared_ptr<SharedPlan> shared;
};

struct otf_session {
  std::shared_ptr<SharedPlan> shared; // outlives `session`
  std::unique_ptr<Session> session;
  std::unique_ptr<Decoder> decoder; // of otf_generate
  Generated generated;              // what its result points to
};

const char *otf_message(void) { return message.c_str(); }

otf_status otf_plan_open(const char *path, otf_plan **plan) {
  if (!path || !plan)
    return missing("otf_plan_open");
  *plan = nullptr;
  Result<std::unique_ptr<PlanFile>> file = PlanFile::open(path);
  if (!file.ok())
    return report(Status(file.status().code(),
                         cat(*path ? path : "''", ": ", file.status().message())));
  auto shared = std::make_shared<SharedPlan>();
  shared->file = std::move(file.value());
  *plan = new otf_plan{std::move(shared)};
  return OTF_OK;
}

void otf_plan_close(otf_plan *plan) { delete plan; }

size_t otf_plan_input_count(const otf_plan *plan) {
  return plan ? plan->shared->file->inputs.size() : 0;
}
size_t otf_plan_output_count(const otf_plan *plan) {
  return plan ? plan->shared->file->outputs.size() : 0;
}
size_t otf_plan_state_count(const otf_plan *plan) {
  return plan ? plan->shared->file->states.size() : 0;
}
otf_status otf_plan_input(const otf_plan *plan, size_t index, otf_tensor_info *result) {
  return plan ? info(plan->shared->file->inputs, index, result) : missing("plan");
}
otf_status otf_plan_output(const otf_plan *plan, size_t index, otf_tensor_info *result) {
  return plan ? info(plan->shared->file->outputs, index, result) : missing("plan");
}
int64_t otf_plan_input_extent(const otf_plan *plan, size_t index, size_t axis) {
  return plan ? extent(*plan->shared->file, plan->shared->file->inputs, index, axis) : -1;
}
int64_t otf_plan_output_extent(const otf_plan *plan, size_t index, size_t axis) {
  return plan ? extent(*plan->shared->file, plan->shared->file->outputs, index, axis) : -1;
}

otf_status otf_session_create(otf_plan *plan, const otf_session_options *options,
                              otf_session **session) {
  if (!plan || !session)
    return missing("otf_session_create");
  *session = nullptr;
  otf_session_options given = options ? *options : otf_session_options{};
  std::string_view name = given.device ? given.device : "cpu";
  SharedPlan &shared = *plan->shared;
  const Device *device = nullptr;
  {
    std::lock_guard lock(shared.mutex);
    auto it = shared.devices.find(name);
    if (it == shared.devices.end()) {
      Result<std::unique_ptr<Device>> made = makeDevice(*shared.file, name);
      if (!made.ok())
        return report(made.status());
      it = shared.devices.emplace(name, std::move(made.value())).first;
    }
    device = it->second.get();
  }
  Result<std::unique_ptr<Session>> made =
      Session::create(*shared.file, *device, {given.threads, given.capacity});
  if (!made.ok())
    return report(made.status());
  *session = new otf_session{plan->shared, std::move(made.value()), nullptr, {}};
  return OTF_OK;
}

void otf_session_destroy(otf_session *session) { delete session; }

otf_status otf_session_set_input(otf_session *session, const char *name, otf_type type,
                                 const int64_t *shape, size_t rank, const void *data) {
  if (!session || !name || (rank && !shape))
    return missing("otf_session_set_input");
  if (unsigned(type) >= kElementTypes)
    return report(usageError("input '", name, "': unknown element type ", int(type)));
  std::span<const int64_t> extents(shape, rank);
  if (!data && byteCount(ElementType(type), extents).value_or(1) != 0)
    return report(usageError("input '", name, "': data is NULL"));
  return report(session->session->setInput(name, {ElementType(type), extents, data}));
}

otf_status otf_session_run(otf_session *session) {
  return session ? report(session->session->run()) : missing("session");
}

otf_status otf_session_get_output(otf_session *session, const char *name, otf_tensor *tensor) {
  if (!session || !name || !tensor)
    return missing("otf_session_get_output");
  std::optional<size_t> index = session->session->findOutput(name);
  if (!index)
    return report(badInput("output '", name, "': the model has none of this name"));
  Result<TensorView> view = session->session->output(*index);
  if (!view.ok())
    return report(view.status());
  *tensor = {otf_type(view.value().type), view.value().shape.size(), view.value().shape.data(),
             view.value().data};
  return OTF_OK;
}

int64_t otf_session_state_length(const otf_session *session) {
  return session ? session->session->stateLength() : 0;
}
otf_status otf_session_state_truncate(otf_session *session, int64_t length) {
  return session ? report(session->session->truncateStates(length)) : missing("session");
}
otf_status otf_session_state_reset(otf_session *session) {
  return otf_session_state_truncate(session, 0);
}

void otf_generate_options_init(otf_generate_options *options) {
  if (!options)
    return;
  *options = otf_generate_options{};
  options->max_tokens = 256;
  options->top_p = 1;
  options->repetition_penalty = 1;
}

static Status languageOf(SharedPlan &shared, const LanguageModel *&language) {
  std::lock_guard lock(shared.mutex);
  if (!shared.language) {
    Result<LanguageModel> made = LanguageModel::create(*shared.file, "");
    if (!made.ok())
      return made.status();
    shared.language.emplace(std::move(made.value()));
  }
  language = &*shared.language;
  return {};
}

static Result<std::vector<int32_t>> promptOf(const LanguageModel &language,
                                             const otf_generate_options &o) {
  if ((o.prompt != nullptr) + (o.prompt_ids != nullptr) + (o.messages != nullptr) != 1)
    return usageError("prompt: give one of prompt, prompt_ids and messages");
  if (o.prompt)
    return language.encode(o.prompt);
  if (o.prompt_ids)
    return std::vector<int32_t>(o.prompt_ids, o.prompt_ids + o.prompt_id_count);
  std::vector<otf::text::ChatMessage> messages;
  for (size_t i = 0; i < o.message_count; ++i) {
    if (!o.messages[i].role || !o.messages[i].content)
      return usageError("message ", i, ": role or content is NULL");
    messages.push_back({o.messages[i].role, o.messages[i].content});
  }
  return language.encodeChat(messages);
}

static Status generateWith(otf_session &s, const otf_generate_options &o,
                           otf_text_callback callback, void *user) {
  const LanguageModel *language = nullptr;
  OTF_TRY(languageOf(*s.shared, language));
  if (!s.decoder) {
    Result<std::unique_ptr<Decoder>> made = Decoder::create(*s.session);
    if (!made.ok())
      return made.status();
    s.decoder = std::move(made.value());
  }
  Result<std::vector<int32_t>> prompt = promptOf(*language, o);
  if (!prompt.ok())
    return prompt.status();
  GenerateOptions options;
  options.sampling = {o.temperature, o.top_k, o.top_p, o.min_p, o.repetition_penalty,
                      o.no_repeat_ngram, o.seed};
  for (size_t i = 0; i < o.stop_count; ++i)
    if (o.stops[i])
      options.stops.push_back(o.stops[i]);
  options.maxTokens = o.max_tokens;
  options.ignoreEnd = o.ignore_end != 0;

  struct Caller {
    otf_text_callback callback;
    void *user;
  } caller{callback, user};
  auto tell = [](void *c, std::string_view text, int32_t id) {
    auto &[function, argument] = *static_cast<Caller *>(c);
    return function(argument, text.data(), text.size(), id) == 0;
  };
  Result<Generated> generated =
      generate(*language, *s.decoder, prompt.value(), options, callback ? +tell : nullptr, &caller);
  if (!generated.ok())
    return generated.status();
  s.generated = std::move(generated.value());
  return {};
}

otf_status otf_generate(otf_session *session, const otf_generate_options *options,
                        otf_text_callback callback, void *user, otf_generation *result) {
  if (!session || !options)
    return missing("otf_generate");
  Status status = generateWith(*session, *options, callback, user);
  if (status.ok() && result) {
    const Generated &g = session->generated;
    *result = {g.ids.data(), g.ids.size(), g.text.c_str(), g.text.size(),
               g.reason,     g.prefillSeconds, g.decodeSeconds};
  }
  return report(status);
}
