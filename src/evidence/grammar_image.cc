#include "evidence/grammar_image.h"

#include <cstring>
#include <map>
#include <type_traits>
#include <utility>
#include <vector>

namespace ezpz::evidence {
namespace {

// The fields of each type in order, for writing and reading alike: what is said once cannot differ.
// A field that is missing here is missed by a test.
template <class Pass>
void all_fields(ExampleLine& it, Pass& pass) {
  pass(it.line, it.expect);
}
template <class Pass>
void all_fields(FileEntry& it, Pass& pass) {
  pass(it.purpose, it.id, it.where, it.regex, it.triggers, it.unless, it.kind, it.role, it.event,
       it.signal, it.weak, it.own_host, it.priority, it.remedy, it.group, it.takes_from,
       it.only_after, it.not_after, it.machines, it.examples, it.counterexamples);
}
template <class Pass>
void all_fields(FileLabel& it, Pass& pass) {
  pass(it.where, it.regex, it.examples, it.counterexamples);
}
template <class Pass>
void all_fields(FileProgress& it, Pass& pass) {
  pass(it.where, it.keys, it.not_after, it.not_followed, it.path_prefixes, it.bar_names,
       it.examples, it.counterexamples);
}
template <class Pass>
void all_fields(GrammarFile& it, Pass& pass) {
  pass(it.speakers, it.launchers, it.entries, it.labels, it.progress);
}

class Writer {
 public:
  template <class... Fields>
  void operator()(Fields&... fields) {
    (write(fields), ...);
  }
  std::string image;

 private:
  void write_number(int32_t number) {
    image.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  void write(std::string& text) {
    write_number(static_cast<int32_t>(text.size()));
    image += text;
  }
  template <class T>
  void write(std::vector<T>& items) {
    write_number(static_cast<int32_t>(items.size()));
    for (T& item : items) write(item);
  }
  void write(std::map<std::string, std::string>& texts) {
    write_number(static_cast<int32_t>(texts.size()));
    for (const auto& [name, text] : texts) {
      std::string copy = name;
      write(copy);
      copy = text;
      write(copy);
    }
  }
  template <class T>
  void write(T& value) {
    if constexpr (std::is_enum_v<T> || std::is_integral_v<T>) {
      write_number(static_cast<int32_t>(value));
    } else {
      all_fields(value, *this);
    }
  }
};

class Reader {
 public:
  explicit Reader(std::string_view image) : left_(image) {}
  template <class... Fields>
  void operator()(Fields&... fields) {
    (read(fields), ...);
  }
  [[nodiscard]] bool read_whole() const { return fine_ && left_.empty(); }

 private:
  int32_t read_number() {
    int32_t number = 0;
    if (left_.size() < sizeof number) {
      fine_ = false;
      return 0;
    }
    std::memcpy(&number, left_.data(), sizeof number);
    left_.remove_prefix(sizeof number);
    return number;
  }
  // How many follow: each takes at least one byte.
  size_t read_count() {
    const auto count = static_cast<size_t>(static_cast<uint32_t>(read_number()));
    if (count > left_.size()) fine_ = false;
    return fine_ ? count : 0;
  }
  void read(std::string& text) {
    const size_t size = read_count();
    text.assign(left_.substr(0, size));
    left_.remove_prefix(size);
  }
  template <class T>
  void read(std::vector<T>& items) {
    const size_t count = read_count();
    for (size_t i = 0; i < count && fine_; ++i) read(items.emplace_back());
  }
  void read(std::map<std::string, std::string>& texts) {
    for (size_t count = read_count(); count > 0 && fine_; --count) {
      std::string name;
      read(name);
      read(texts[name]);
    }
  }
  template <class T>
  void read(T& value) {
    if constexpr (std::is_enum_v<T> || std::is_integral_v<T>) {
      value = static_cast<T>(read_number());
    } else {
      all_fields(value, *this);
    }
  }

  std::string_view left_;
  bool fine_ = true;
};

}  // namespace

std::string to_image(GrammarFile file) {
  Writer writer;
  all_fields(file, writer);
  return std::move(writer.image);
}

std::optional<GrammarFile> from_image(std::string_view image) {
  Reader reader(image);
  GrammarFile file;
  all_fields(file, reader);
  if (!reader.read_whole()) return std::nullopt;
  return file;
}

}  // namespace ezpz::evidence
