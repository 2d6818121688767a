// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of probing and sending, on a UART of a hundred lines.

mod fake;
mod probing;
mod sending;
