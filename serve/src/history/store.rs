// SPDX-License-Identifier: MIT OR Apache-2.0
//! The database: records and samples of hosts by time, in bounded size and age.
//!
//! Values are JSON, not postcard: a record of another release stays readable, with other fields too.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use redb::backends::InMemoryBackend;
use redb::{Builder, Database, Error, ReadableDatabase as _, ReadableTable as _, StorageBackend};
use serde::de::DeserializeOwned;

use self::tables::{BY_TIME, STATES, insert};
use super::HistoryError;

mod tables;
#[cfg(test)]
mod tests;

pub use self::tables::{Item, Kind};

/// The database's cache.
const CACHE_BYTES: usize = 4 << 20;
/// The file may be twice as long as its content: it doubles when it grows.
const GROWTH: u64 = 2;
/// Each round of pruning removes at least an eighth of the time that is kept.
const ROUNDS: u32 = 40;

/// The most that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the file.
    pub bytes: u64,
    /// Age of a record.
    pub age: Duration,
}

/// The part of a host's history that is wanted.
#[derive(Clone, Debug)]
pub struct Span<'s> {
    /// The host.
    pub host: &'s str,
    /// The first time, in milliseconds since 1970.
    pub from_ms: u64,
    /// The last one.
    pub to_ms: u64,
    /// The most records.
    pub limit: usize,
}

/// The database.
#[derive(Debug)]
pub struct Store {
    database: Database,
    place: String,
    limits: Limits,
}

impl Store {
    /// Opens the file, or begins one. A damaged file is moved aside; its new path is returned.
    ///
    /// # Errors
    /// The file is in use, or cannot be made.
    pub fn open(path: &Path, limits: Limits) -> Result<(Self, Option<(PathBuf, HistoryError)>), HistoryError> {
        let place = path.display().to_string();
        // Each page's checksum is compared before the page is used.
        let open = || builder().set_check_integrity_on_open(true).create(path);
        let opened = open().map_err(|error| HistoryError::new(&place, error));
        let error = match opened.and_then(|database| Self::begin(database, &place, limits)) {
            Ok(store) => return Ok((store, None)),
            Err(error @ HistoryError::Damaged { .. }) => error,
            Err(error) => return Err(error),
        };
        let aside = path.with_added_extension("damaged");
        fs::rename(path, &aside).map_err(|error| HistoryError::new(&place, Error::Io(error)))?;
        let database = open().map_err(|error| HistoryError::new(&place, error))?;
        Ok((Self::begin(database, &place, limits)?, Some((aside, error))))
    }

    /// Keeps everything in memory.
    ///
    /// # Errors
    /// None is known.
    pub fn in_memory(limits: Limits) -> Result<Self, HistoryError> {
        Self::over(InMemoryBackend::new(), limits)
    }

    fn over(backend: impl StorageBackend, limits: Limits) -> Result<Self, HistoryError> {
        let database = builder().create_with_backend(backend);
        Self::begin(database.map_err(|error| HistoryError::new("in memory", error))?, "in memory", limits)
    }

    /// Makes the tables, so that they can be read.
    fn begin(database: Database, place: &str, limits: Limits) -> Result<Self, HistoryError> {
        let store = Self { database, place: place.to_owned(), limits };
        store.write(&[])?;
        Ok(store)
    }

    /// Keeps all of this, or nothing. Returns the number of bytes.
    ///
    /// # Errors
    /// There is no space, or the file cannot be written.
    pub fn write(&self, items: &[Item]) -> Result<u64, HistoryError> {
        self.named(|| {
            let transaction = self.database.begin_write()?;
            let bytes = insert(&transaction, items)?;
            transaction.commit()?;
            Ok(bytes)
        })
    }

    /// Removes the records that are too old, and the oldest until the rest fits. Returns the bytes that are left.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn prune(&self, now_ms: u64) -> Result<u64, HistoryError> {
        let age = u64::try_from(self.limits.age.as_millis()).unwrap_or(u64::MAX);
        let mut first_ms = now_ms.saturating_sub(age);
        let mut used = self.remove_before(first_ms)?;
        for round in 1..=ROUNDS {
            if used <= self.limits.bytes / GROWTH {
                break;
            }
            let (oldest, newest) = self.named(|| self.times())?;
            first_ms = match round {
                // A flood within one moment.
                ROUNDS => u64::MAX,
                _ => oldest.saturating_add((newest - oldest) / 8).saturating_add(1),
            };
            used = self.remove_before(first_ms)?;
        }
        Ok(used)
    }

    /// Returns the records of a time, oldest first, with their times. One that is no JSON of this type is left out.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read<T: DeserializeOwned>(&self, kind: Kind, span: &Span<'_>) -> Result<Vec<(u64, T)>, HistoryError> {
        self.select(kind, span, false)
    }

    /// Returns the newest records, oldest first.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn last<T: DeserializeOwned>(&self, kind: Kind, host: &str, limit: usize) -> Result<Vec<T>, HistoryError> {
        let found = self.select(kind, &Span { host, from_ms: 0, to_ms: u64::MAX, limit }, true)?;
        Ok(found.into_iter().rev().map(|(_, record)| record).collect())
    }

    /// Returns the kept state of a host.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn state<T: DeserializeOwned>(&self, host: &str) -> Result<Option<T>, HistoryError> {
        self.named(|| {
            let table = self.database.begin_read()?.open_table(STATES)?;
            let found = table.get(host)?;
            Ok(found.and_then(|json| serde_json::from_slice(json.value()).ok()))
        })
    }

    fn select<T: DeserializeOwned>(
        &self,
        kind: Kind,
        span: &Span<'_>,
        is_newest_first: bool,
    ) -> Result<Vec<(u64, T)>, HistoryError> {
        self.named(|| {
            if span.from_ms > span.to_ms {
                return Ok(Vec::new());
            }
            let table = self.database.begin_read()?.open_table(kind.table())?;
            let mut range = table.range((span.host, span.from_ms, 0)..=(span.host, span.to_ms, u64::MAX))?;
            let mut found = Vec::new();
            while found.len() < span.limit {
                let next = if is_newest_first { range.next_back() } else { range.next() };
                let Some((key, json)) = next.transpose()? else { break };
                found.extend(serde_json::from_slice(json.value()).ok().map(|record| (key.value().1, record)));
            }
            Ok(found)
        })
    }

    /// Removes older records. Returns the bytes that are left.
    fn remove_before(&self, first_ms: u64) -> Result<u64, HistoryError> {
        self.named(|| {
            let transaction = self.database.begin_write()?;
            for table in BY_TIME {
                transaction.open_table(table)?.retain(|(_, at_ms, _), _| at_ms >= first_ms)?;
            }
            let stats = transaction.stats()?;
            let used = stats.stored_bytes() + stats.metadata_bytes() + stats.fragmented_bytes();
            transaction.commit()?;
            Ok(used)
        })
    }

    /// Returns the times of the oldest and of the newest record.
    fn times(&self) -> Result<(u64, u64), Error> {
        let transaction = self.database.begin_read()?;
        let (mut oldest, mut newest) = (u64::MAX, 0);
        for table in BY_TIME {
            for row in transaction.open_table(table)?.iter()? {
                let (_, at_ms, _) = row?.0.value();
                (oldest, newest) = (oldest.min(at_ms), newest.max(at_ms));
            }
        }
        Ok((oldest.min(newest), newest))
    }

    fn named<T>(&self, access: impl FnOnce() -> Result<T, Error>) -> Result<T, HistoryError> {
        access().map_err(|error| HistoryError::new(&self.place, error))
    }
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_BYTES);
    builder
}
