// SPDX-License-Identifier: MIT OR Apache-2.0

mod hardware;
mod operation;
mod property;
mod start;
mod walk;
