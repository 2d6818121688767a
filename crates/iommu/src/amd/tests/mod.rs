// SPDX-License-Identifier: MIT OR Apache-2.0

mod hardware;
mod operation;
mod start;
mod walk;
