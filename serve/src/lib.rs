// SPDX-License-Identifier: MIT OR Apache-2.0
//! The operator's service as a library: it owns one line to each host, and shares the hosts through a JSON API, server-
//! sent events, metrics and a page.
//!
//! ```text
//!  clients ──► listen ──► access ──► api ──────────► host (handle) ══► owner thread ──► baton::client ──► the host
//!  (HTTP, TLS) tls        roles      page, metrics     ▲ snapshot, news       one a host; blocking
//!                         audit ◄── orders             └────────────────────────┘
//! ```
//!
//! | module | responsibility |
//! |---|---|
//! | [`options`] | the command line |
//! | [`access`] | clients and their roles |
//! | [`tls`], [`listen`] | sockets, certificates and the limits of a connection |
//! | [`audit`] | the record of every order and its answer |
//! | [`host`] | a host: its line, its last report, its queue |
//! | [`history`] | events, logs and metrics, kept in a database |
//! | [`ending`] | signals, and the stages in which the service ends |
//! | [`updates`] | updates of a host: those under way and those that its timeline shows |
//! | [`api`] | the requests of clients |
//! | [`control`] | the control channel's own protocol, for the tool |
//! | [`metrics`] | figures in OpenMetrics |
//! | [`page`] | the page for browsers |
//! | [`service`] | all of it together |
#![warn(missing_docs)]

pub mod access;
pub mod api;
pub mod audit;
pub mod control;
pub mod ending;
pub mod history;
pub mod host;
pub mod listen;
pub mod metrics;
pub mod options;
pub mod page;
pub mod service;
pub mod tls;
pub mod updates;

pub use baton::clock;
