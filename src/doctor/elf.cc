#include "doctor/elf.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <optional>

#include "base/file.h"
#include "base/text.h"

namespace ezpz::doctor {
namespace {

constexpr size_t kMostSegments = 512;
constexpr size_t kMostSections = 8192;
constexpr size_t kMostDynamic = 16384;  // entries
constexpr size_t kMostName = 4096;      // bytes of one string
constexpr size_t kMostNames = 4U << 20U;
constexpr size_t kMostConstants = 64U << 20U;
constexpr size_t kChunk = 1U << 20U;

#if defined(__aarch64__)
constexpr Elf64_Half kNativeMachine = EM_AARCH64;
#elif defined(__powerpc64__)
constexpr Elf64_Half kNativeMachine = EM_PPC64;
#else
constexpr Elf64_Half kNativeMachine = EM_X86_64;
#endif

template <class T>
bool read_struct(const ReadAt& read, uint64_t offset, T* into) {
  return read(offset, sizeof *into, reinterpret_cast<char*>(into));
}

// offset + index * size, or nothing when that is beyond any file.
std::optional<uint64_t> element_at(uint64_t offset, uint64_t index, uint64_t size) {
  constexpr uint64_t limit = 1ULL << 62U;
  if (offset > limit || index > limit / size) return std::nullopt;
  return offset + index * size;
}

Result<Elf64_Ehdr> read_header(const ReadAt& read, const std::string& name) {
  Elf64_Ehdr header;
  if (!read_struct(read, 0, &header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    return Error{"not an ELF file", name, ""};
  }
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB) {
    return Error{"not a 64-bit little-endian ELF file", name, ""};
  }
  return header;
}

struct Segments {
  std::vector<Elf64_Phdr> load;
  std::optional<Elf64_Phdr> dynamic;

  // Where in the file an address of the loaded image lies.
  [[nodiscard]] std::optional<uint64_t> offset_of(uint64_t address) const {
    for (const Elf64_Phdr& segment : load) {
      if (address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz) {
        return element_at(segment.p_offset, address - segment.p_vaddr, 1);
      }
    }
    return std::nullopt;
  }
};

Segments read_segments(const ReadAt& read, const Elf64_Ehdr& header) {
  Segments segments;
  const size_t count = std::min<size_t>(header.e_phnum, kMostSegments);
  for (size_t i = 0; i < count && header.e_phentsize == sizeof(Elf64_Phdr); ++i) {
    Elf64_Phdr segment;
    const auto at = element_at(header.e_phoff, i, sizeof segment);
    if (!at || !read_struct(read, *at, &segment)) break;
    if (segment.p_type == PT_LOAD) segments.load.push_back(segment);
    if (segment.p_type == PT_DYNAMIC) segments.dynamic = segment;
  }
  return segments;
}

std::vector<Elf64_Dyn> read_dynamic(const ReadAt& read, const Segments& segments) {
  std::vector<Elf64_Dyn> entries;
  if (!segments.dynamic) return entries;
  const size_t count =
      std::min<uint64_t>(segments.dynamic->p_filesz / sizeof(Elf64_Dyn), kMostDynamic);
  for (size_t i = 0; i < count; ++i) {
    Elf64_Dyn entry;
    const auto at = element_at(segments.dynamic->p_offset, i, sizeof entry);
    if (!at || !read_struct(read, *at, &entry) || entry.d_tag == DT_NULL) break;
    entries.push_back(entry);
  }
  return entries;
}

std::optional<uint64_t> value_of(const std::vector<Elf64_Dyn>& entries, Elf64_Sxword tag) {
  for (const Elf64_Dyn& entry : entries) {
    if (entry.d_tag == tag) return entry.d_un.d_val;
  }
  return std::nullopt;
}

struct Strings {
  uint64_t offset = 0;  // in the file
  uint64_t size = 0;
};

std::optional<Strings> dynamic_strings(const std::vector<Elf64_Dyn>& entries,
                                       const Segments& segments) {
  const auto address = value_of(entries, DT_STRTAB);
  const auto size = value_of(entries, DT_STRSZ);
  if (!address || !size) return std::nullopt;
  const auto offset = segments.offset_of(*address);
  if (!offset) return std::nullopt;
  return Strings{*offset, *size};
}

// The string at that place of the table; empty for one that is not there, or not ended in time.
std::string string_at(const ReadAt& read, const Strings& strings, uint64_t index) {
  std::string text;
  char buffer[256];
  while (index < strings.size && text.size() < kMostName) {
    const size_t size = std::min<uint64_t>(sizeof buffer, strings.size - index);
    const auto at = element_at(strings.offset, index, 1);
    if (!at || !read(*at, size, buffer)) return "";
    const void* end = memchr(buffer, 0, size);
    if (end != nullptr)
      return text.append(std::string_view(buffer, static_cast<const char*>(end) - buffer));
    text.append(buffer, size);
    index += size;
  }
  return "";
}

// Calls look with every chunk of the range, each beginning with the last `overlap` bytes of the one
// before; stops when that returns true.
void in_chunks(const ReadAt& read, uint64_t offset, uint64_t size, size_t overlap,
               const std::function<bool(std::string_view)>& look) {
  std::string chunk;
  uint64_t done = 0;
  while (done < size) {
    const size_t more = std::min<uint64_t>(kChunk, size - done);
    if (chunk.size() > overlap) chunk.erase(0, chunk.size() - overlap);
    const size_t kept = chunk.size();
    chunk.resize(kept + more);
    const auto at = element_at(offset, done, 1);
    if (!at || !read(*at, more, chunk.data() + kept)) return;
    if (look(chunk)) return;
    done += more;
  }
}

// An open file that is read at offsets. Regular files only: reading a pipe would block.
std::optional<ReadAt> file_reader(const std::string& path) {
  auto fd = std::make_shared<Fd>(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!*fd) return std::nullopt;
  return [fd](uint64_t offset, size_t size, char* into) {
    while (size > 0) {
      const ssize_t n = pread(fd->get(), into, size, static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      offset += static_cast<uint64_t>(n);
      into += n;
      size -= static_cast<size_t>(n);
    }
    return true;
  };
}

}  // namespace

Result<ElfFile> parse_elf(const ReadAt& read, const std::string& name) {
  const Result<Elf64_Ehdr> header = read_header(read, name);
  if (!header) return header.error();
  ElfFile file;
  file.native = header->e_machine == kNativeMachine;
  const Segments segments = read_segments(read, *header);
  const std::vector<Elf64_Dyn> entries = read_dynamic(read, segments);
  const std::optional<Strings> strings = dynamic_strings(entries, segments);
  if (!strings) return file;  // static: it needs nothing
  for (const Elf64_Dyn& entry : entries) {
    if (entry.d_tag != DT_NEEDED && entry.d_tag != DT_SONAME && entry.d_tag != DT_RPATH &&
        entry.d_tag != DT_RUNPATH) {
      continue;
    }
    const std::string text = string_at(read, *strings, entry.d_un.d_val);
    if (text.empty()) continue;
    if (entry.d_tag == DT_NEEDED) file.needed.push_back(text);
    if (entry.d_tag == DT_SONAME) file.soname = text;
    if (entry.d_tag == DT_RPATH) file.rpath = split(text, ':');
    if (entry.d_tag == DT_RUNPATH) file.runpath = split(text, ':');
  }
  return file;
}

std::vector<std::string> names_in_elf(const ReadAt& read, std::string_view prefix) {
  std::vector<std::string> names;
  const Result<Elf64_Ehdr> header = read_header(read, "");
  if (!header) return names;
  const Segments segments = read_segments(read, *header);
  const auto strings = dynamic_strings(read_dynamic(read, segments), segments);
  if (!strings) return names;
  std::string table(std::min<uint64_t>(strings->size, kMostNames), '\0');
  if (!read(strings->offset, table.size(), table.data())) return names;
  for (const std::string& name : split(table, '\0')) {
    if (name.starts_with(prefix)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::string nccl_version_in_elf(const ReadAt& read) {
  constexpr std::string_view mark = "CCL version ";  // NCCL's and RCCL's
  constexpr size_t overlap = 128;
  const Result<Elf64_Ehdr> header = read_header(read, "");
  if (!header || header->e_shentsize != sizeof(Elf64_Shdr)) return "";
  // The constants are in read-only data; the code for the GPUs beside it is hundreds of megabytes.
  std::string version;
  const size_t count = std::min<size_t>(header->e_shnum, kMostSections);
  for (size_t i = 0; i < count && version.empty(); ++i) {
    Elf64_Shdr section;
    const auto at = element_at(header->e_shoff, i, sizeof section);
    if (!at || !read_struct(read, *at, &section)) break;
    const bool constants = section.sh_type == SHT_PROGBITS && (section.sh_flags & SHF_ALLOC) != 0 &&
                           (section.sh_flags & (SHF_WRITE | SHF_EXECINSTR)) == 0;
    if (!constants || section.sh_size > kMostConstants) continue;
    in_chunks(read, section.sh_offset, section.sh_size, overlap, [&](std::string_view bytes) {
      for (size_t found = bytes.find(mark); found != std::string_view::npos;
           found = bytes.find(mark, found + 1)) {
        const std::string_view rest = bytes.substr(found + mark.size(), 32);
        const size_t end = rest.find_first_not_of("0123456789.");
        if (end == std::string_view::npos || end == 0 || !isdigit(rest[0])) continue;
        version = rest.substr(0, end);
        return true;
      }
      return false;
    });
  }
  return version;
}

Result<ElfFile> read_elf(const std::string& path) {
  const auto reader = file_reader(path);
  if (!reader) return Error{"cannot be opened", path, ""};
  return parse_elf(*reader, path);
}

std::vector<std::string> names_in_elf(const std::string& path, std::string_view prefix) {
  const auto reader = file_reader(path);
  return reader ? names_in_elf(*reader, prefix) : std::vector<std::string>();
}

std::string nccl_version_in_elf(const std::string& path) {
  const auto reader = file_reader(path);
  return reader ? nccl_version_in_elf(*reader) : "";
}

}  // namespace ezpz::doctor
