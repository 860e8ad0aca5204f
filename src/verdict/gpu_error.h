// Which GPU errors are the hardware's and which the program's own.
#pragma once

#include "base/fact.h"

namespace ezpz::verdict {

enum class GpuError {
  hardware,     // may convict the host it names
  application,  // illegal access and kin: a bug in the program, never convicts
  unproven,     // a GPU error that may be either: a verdict, but no conviction
};

// Of a fact whose kind is gpu_fault. An NVIDIA Xid number decides where the message has one (as the
// fact's code, or in its text); without one the grammar's word that it is a GPU fault stands.
GpuError gpu_error(const Fact&);

}  // namespace ezpz::verdict
