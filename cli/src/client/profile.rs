// SPDX-License-Identifier: MIT OR Apache-2.0
//! A profile of the host itself, page by page.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use wire::{MAX_PROFILE_WORDS, ProfilePage, Refusal, ReplyBody, RequestBody};

use super::{Client, some_number, unexpected};

/// The interval between two requests for samples: the host keeps some seconds' worth.
const INTERVAL: Duration = Duration::from_millis(100);

/// The samples of a profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// The last page's head: its samples are [`Self::words`].
    pub head: ProfilePage,
    /// All samples, as the crate `profile` describes them.
    pub words: Vec<u32>,
    /// The reason for which the host ended it early, if it did.
    pub cut_short: Option<String>,
}

impl Client {
    /// Samples each CPU `hz` times a second for this time. `accept` sees the first page, and may want no
    /// more.
    pub fn profile(
        &mut self,
        hz: u32,
        time: Duration,
        accept: impl FnOnce(&mut Self, &ProfilePage) -> Result<()>,
    ) -> Result<Taken> {
        let by = some_number();
        let first = self.page(RequestBody::ProfileBegin { by, hz })?;
        if let Err(error) = accept(self, &first) {
            self.end(by, &mut Taken::default())?;
            return Err(error);
        }
        let mut taken = Taken { words: first.samples.clone(), head: first, cut_short: None };
        if let Err(error) = self.gather(by, Instant::now() + time, &mut taken) {
            // The samples so far are still reported.
            taken.cut_short = Some(error.downcast::<Refusal>()?.to_string());
        }
        Ok(taken)
    }

    fn gather(&mut self, by: u32, end: Instant, taken: &mut Taken) -> Result<()> {
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            let page = self.page(RequestBody::ProfileRead { by, is_end: false })?;
            // Samples are not cut in two, so a page that is full may have some room left.
            if page.samples.len() < MAX_PROFILE_WORDS / 2 {
                thread::sleep(left.min(INTERVAL));
            }
            taken.add(page);
        }
        self.end(by, taken)
    }

    /// Takes the remaining samples, which makes room for the next profile.
    fn end(&mut self, by: u32, taken: &mut Taken) -> Result<()> {
        loop {
            let page = self.page(RequestBody::ProfileRead { by, is_end: true })?;
            let is_last = page.samples.is_empty();
            taken.add(page);
            if is_last {
                return Ok(());
            }
        }
    }

    fn page(&mut self, question: RequestBody) -> Result<ProfilePage> {
        match self.request(question)? {
            ReplyBody::Profile(page) => Ok(page),
            other => bail!(unexpected(&other)),
        }
    }
}

impl Taken {
    fn add(&mut self, page: ProfilePage) {
        self.words.extend(&page.samples);
        self.head = page;
    }
}
