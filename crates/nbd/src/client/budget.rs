// SPDX-License-Identifier: MIT OR Apache-2.0
//! The bounds of a turn, and the reasons for its early end.

use crate::problem::Problem;

/// The reason for the early end of a turn.
pub(super) enum TurnError<F> {
    Server(Problem),
    Driver(F),
}

impl<F> From<Problem> for TurnError<F> {
    fn from(problem: Problem) -> Self {
        Self::Server(problem)
    }
}

/// The rest of a turn's budget.
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
