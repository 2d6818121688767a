// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the image does for every layer above, whatever runs on it: memory, and the record of what takes how long.
//!
//! | module | what |
//! |---|---|
//! | [`ledger`] | who owns which memory; memory for guests |
//! | [`timeline`] | spans and instants of each CPU |

pub mod ledger;
pub mod timeline;
