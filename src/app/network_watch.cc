#include "app/network_watch.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "verdict/network.h"

namespace ezpz::app {
namespace {

// Any of these is the user's way to have, or not to have, NCCL's lines: then none is touched.
constexpr std::array kOfTheUser{"NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE"};

bool set_by_user(const LaunchOptions& options, const site::Environment& env,
                 const std::string& name) {
  return options.env.contains(name) || site::get(env, name).has_value() ||
         std::find(options.inherit.begin(), options.inherit.end(), name) != options.inherit.end();
}

// "2.24.3" at the start of the text, or nothing.
std::string version_at(std::string_view text) {
  const size_t end = std::min(text.find_first_not_of("0123456789."), text.size());
  std::string version(text.substr(0, end));
  while (version.ends_with('.')) version.pop_back();
  const bool dotted = version.find('.') != std::string::npos;
  return dotted && version.size() <= 16 ? version : std::string();
}

// Behind "nccl/" where that begins the text or follows a slash or a dash.
std::string version_in_path(std::string_view text) {
  constexpr std::string_view kName = "nccl/";
  for (size_t at = text.find(kName); at != std::string_view::npos; at = text.find(kName, at + 1)) {
    if (at > 0 && text[at - 1] != '/') continue;
    if (std::string version = version_at(text.substr(at + kName.size())); !version.empty()) {
      return version;
    }
  }
  return {};
}

}  // namespace

std::string nccl_asked_for(const site::Environment& env) {
  if (const auto modules = site::get(env, "LOADEDMODULES")) {
    for (const std::string& module : split(*modules, ':')) {
      if (std::string version = version_in_path(module); !version.empty()) return version;
    }
  }
  if (const auto version = site::get(env, "NCCL_VERSION")) return version_at(*version);
  if (const auto path = site::get(env, "LD_LIBRARY_PATH")) {
    for (const std::string& directory : split(*path, ':')) {
      if (std::string version = version_in_path(directory); !version.empty()) return version;
    }
  }
  return {};
}

NetworkWatch watch_network(const LaunchOptions& options, const site::Machine& machine,
                           const site::Environment& env, size_t hosts) {
  NetworkWatch watch;
  watch.wish.expected = machine.network;
  watch.wish.remedy = machine.network_remedy;
  watch.wish.price = machine.network_price;
  if (options.require_net) {
    // What the machine's table advises leads to the machine's network only.
    if (!verdict::same_network(*options.require_net, machine.network)) {
      watch.wish.remedy.clear();
      watch.wish.price.clear();
    }
    watch.wish.expected = *options.require_net;
    watch.wish.required = true;
  }
  watch.watched = hosts > 1 && !watch.wish.expected.empty();
  if (!watch.watched) return watch;
  watch.nccl_asked = nccl_asked_for(env);
  std::vector<std::string> own;
  for (const char* name : kOfTheUser) {
    if (set_by_user(options, env, name)) own.emplace_back(name);
  }
  if (!own.empty()) {
    const bool to_a_file = std::find(own.begin(), own.end(), "NCCL_DEBUG_FILE") != own.end();
    watch.why_unseen = join(own, " and ") + (own.size() > 1 ? " are" : " is") +
                       " set by the user and left alone" +
                       (to_a_file ? "; NCCL's lines go to that file" : "");
    return watch;
  }
  watch.env["NCCL_DEBUG"] = "INFO";
  watch.env["NCCL_DEBUG_SUBSYS"] = "INIT,NET";
  return watch;
}

}  // namespace ezpz::app
