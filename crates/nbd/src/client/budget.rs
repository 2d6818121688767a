// SPDX-License-Identifier: MIT OR Apache-2.0
//! What bounds a turn, and what ends it early.

use crate::problem::Problem;

/// What ends a turn.
pub(super) enum Trouble<F> {
    Server(Problem),
    Driver(F),
}

impl<F> From<Problem> for Trouble<F> {
    fn from(problem: Problem) -> Self {
        Self::Server(problem)
    }
}

/// What is left of a turn.
pub(super) struct Budget {
    pub bytes: usize,
    pub steps: u32,
}

impl Budget {
    pub fn is_spent(&self) -> bool {
        self.bytes == 0 || self.steps == 0
    }

    pub fn spend(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}
