// SPDX-License-Identifier: MIT OR Apache-2.0
mod adopting;
mod failing;
mod faulting;
mod interrupting;
mod properties;
mod reaching;
mod setup;
mod starting;
