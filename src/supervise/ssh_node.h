// The far end of an ssh, behind `ezpz ssh-node`: takes an order from its input, starts the ranks of
// this host, sends their output and ends over its output, and leaves nobody behind. When its input
// ends (the connection is lost, or the launcher was killed), or nothing has come for too long (a
// cut cable ends no connection), its ranks are ended: SIGTERM, a moment, SIGKILL to all below it.
#pragma once

namespace ezpz::supervise {

// Reads from 0, writes to 1. Returns the exit code, when every rank and everything they started is
// gone.
int run_ssh_node();

}  // namespace ezpz::supervise
