// SPDX-License-Identifier: MIT OR Apache-2.0
mod exception;
mod model;
mod pending;
mod polling;
mod properties;
mod retired;
mod starting;
