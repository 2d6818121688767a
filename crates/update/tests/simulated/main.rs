// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whole updates on simulated CPUs: every schedule of two with one fault at each step, and random ones of up to 64.

mod exhaustive;
mod explore;
mod fault;
mod machine;
mod random;
mod scenarios;
mod world;
