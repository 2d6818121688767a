// SPDX-License-Identifier: MIT OR Apache-2.0
mod code;
mod exchange;
mod models;
mod registers;
mod rows;
mod threads;
