// SPDX-License-Identifier: MIT OR Apache-2.0
//! The client: requests in flight, and the connection that they are sent on.
//!
//! | module | content |
//! |---|---|
//! | `turn` | the work of one turn, and the requests that it is done for |
//! | `link`, `send`, `receive` | the parts of a turn: the connection, and what goes either way |
//! | `resume` | the state as plain data |
//! | `state` | the client itself, below all of these |
//! | `budget`, `config`, `connection`, `tags` | its parts |

mod budget;
mod config;
mod connection;
mod link;
mod receive;
mod resume;
mod send;
mod state;
mod tags;
mod turn;

pub use config::{Config, News};
pub use state::Client;
