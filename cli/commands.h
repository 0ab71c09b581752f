// The commands. Each prints what it has to say and returns the exit status.
// One thread, the main one.
#pragma once

#include "command_line.h"
#include "interrupts.h"

namespace weightcast {

/// Sends a model to the receivers that join with the ticket.
int run_send(const SendCommand& command, Interrupts& interrupts);
/// Joins with a ticket, receives, and writes files or only checks.
int run_receive(const ReceiveCommand& command, Interrupts& interrupts);
/// Sends a model to receivers of its own, and compares what they wrote with the source.
int run_quickstart(const QuickstartCommand& command, Interrupts& interrupts);
/// Shows how a model's tensors lie in buckets.
int run_plan(const PlanCommand& command, Interrupts& interrupts);
/// Shows what this machine has.
int run_doctor(const DoctorCommand& command, Interrupts& interrupts);

}  // namespace weightcast
