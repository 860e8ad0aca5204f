// A folder that is to be written: is it there, can it be, is there room, on what does it lie?
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/process.h"
#include "doctor/job_sight.h"

namespace ezpz::doctor {

// Makes and removes a file in it, or in the nearest folder above it that is there; makes no folder.
// Its file system may hang: for a process that may be given up.
FolderSight look_at_folder(const std::string& absolute_path, const AskHelper&);

// JSON on one line in ASCII, and back; nothing from what is not one.
std::string format_folder(const FolderSight&);
std::optional<FolderSight> parse_folder(std::string_view text);

}  // namespace ezpz::doctor
