// SPDX-License-Identifier: MIT OR Apache-2.0
mod contract;
mod machine;
mod property;
mod requests;
