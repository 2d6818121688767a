// SPDX-License-Identifier: MIT OR Apache-2.0
use super::*;

/// The outcome of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Done,
    Refused,
    /// The order does not arrive.
    OrderLost,
    /// The order is carried out, and its answer does not arrive.
    AnswerLost,
}

const FATES: [Fate; 4] = [Fate::Done, Fate::Refused, Fate::OrderLost, Fate::AnswerLost];

/// Two hosts, each step of which has a fate.
#[derive(Debug)]
struct Model {
    pauses: Fate,
    goes_on: Fate,
    stops: Fate,
    resumes: Fate,
    is_paused_for_good: bool,
    is_stopped: bool,
    runs_here: bool,
    runs_there: bool,
}

impl Model {
    fn of([pauses, goes_on, stops, resumes]: [Fate; 4]) -> Self {
        let (is_paused_for_good, is_stopped, runs_here, runs_there) = (false, false, false, false);
        Self { pauses, goes_on, stops, resumes, is_paused_for_good, is_stopped, runs_here, runs_there }
    }

    fn arrives(fate: Fate) -> bool {
        matches!(fate, Fate::Done | Fate::AnswerLost)
    }

    fn answer(fate: Fate) -> Result<()> {
        match fate {
            Fate::Done => Ok(()),
            Fate::Refused => Err(anyhow!("refused")),
            Fate::OrderLost | Fate::AnswerLost => Err(anyhow!("no answer")),
        }
    }

    /// A hold that nothing has made a pause for good runs out.
    fn later(&mut self) {
        self.runs_here |= !self.is_paused_for_good && !self.is_stopped;
    }
}

impl Hosts for Model {
    fn pause_for_good(&mut self) -> Result<()> {
        self.is_paused_for_good = Self::arrives(self.pauses);
        Self::answer(self.pauses)
    }

    fn go_on(&mut self) -> GoneOn {
        self.runs_there = Self::arrives(self.goes_on);
        match self.goes_on {
            Fate::Done => GoneOn::Runs,
            Fate::Refused => GoneOn::Refused(anyhow!("refused")),
            Fate::OrderLost | Fate::AnswerLost => GoneOn::Unknown(anyhow!("no answer")),
        }
    }

    fn stop(&mut self) -> Result<()> {
        self.is_stopped = Self::arrives(self.stops);
        Self::answer(self.stops)
    }

    fn resume(&mut self) -> Result<()> {
        if Self::arrives(self.resumes) {
            (self.runs_here, self.is_paused_for_good) = (true, false);
        }
        Self::answer(self.resumes)
    }
}

/// All courses.
fn courses() -> impl Iterator<Item = Model> {
    let each = |number: usize| FATES[number % 4];
    (0..256).map(move |number| Model::of([each(number), each(number / 4), each(number / 16), each(number / 64)]))
}

#[test]
fn whatever_fails_the_guest_never_runs_twice() {
    for mut hosts in courses() {
        let result = hand_over(&mut hosts);
        hosts.later();
        assert!(!(hosts.runs_here && hosts.runs_there), "{hosts:?}");
        if result.is_ok() {
            assert!(hosts.runs_there && hosts.is_stopped, "{hosts:?}");
        }
    }
}

#[test]
fn where_it_runs_nowhere_the_error_states_what_to_do() {
    for mut hosts in courses() {
        let result = hand_over(&mut hosts);
        hosts.later();
        if !hosts.runs_here && !hosts.runs_there {
            let error = format!("{:#}", result.expect_err("it runs nowhere"));
            assert!(error.contains("`baton vm resume`"), "{error}: {hosts:?}");
        }
    }
}

#[test]
fn where_it_cannot_go_on_there_it_goes_on_here_and_the_reason_is_reported() {
    let mut hosts = Model::of([Fate::Done, Fate::Refused, Fate::Done, Fate::Done]);
    assert_eq!(hand_over(&mut hosts).expect_err("refused").to_string(), "refused");
    assert!(hosts.runs_here && !hosts.runs_there);
}
