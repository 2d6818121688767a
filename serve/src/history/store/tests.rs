// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of the database.

use std::io;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const LIMITS: Limits = Limits { bytes: 4 << 20, age: Duration::from_secs(3600) };

fn item(kind: Kind, host: &str, at_ms: u64, id: u64) -> Item {
    let json = serde_json::to_vec(&json!({ "id": id, "text": "x".repeat(100) })).expect("JSON");
    Item::Record { kind, host: host.to_owned(), at_ms, id, json }
}

fn ids(store: &Store, kind: Kind, host: &str, from_ms: u64, to_ms: u64) -> Vec<u64> {
    let span = Span { host, from_ms, to_ms, limit: usize::MAX };
    let found: Vec<(u64, Value)> = store.read(kind, &span).expect("read");
    found.into_iter().map(|(_, record)| record["id"].as_u64().expect("a number")).collect()
}

/// Memory that cannot grow beyond a limit, as a disk.
#[derive(Debug)]
struct Disk(InMemoryBackend, u64);

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        if len > self.1 { Err(io::ErrorKind::StorageFull.into()) } else { self.0.set_len(len) }
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write(offset, data)
    }
}

#[test]
fn records_are_read_by_host_kind_and_time() {
    let store = Store::in_memory(LIMITS).expect("a store");
    let items = [
        item(Kind::Event, "a", 10, 1),
        item(Kind::Event, "a", 20, 2),
        item(Kind::Event, "a", 20, 3),
        item(Kind::Event, "ab", 20, 4),
        item(Kind::Log, "a", 20, 5),
        Item::State { host: "a".to_owned(), json: b"7".to_vec() },
    ];
    store.write(&items).expect("written");
    assert_eq!(ids(&store, Kind::Event, "a", 0, u64::MAX), [1, 2, 3]);
    assert_eq!(ids(&store, Kind::Event, "a", 11, 20), [2, 3]);
    assert!(ids(&store, Kind::Event, "a", 20, 10).is_empty());
    let last: Vec<Value> = store.last(Kind::Event, "a", 2).expect("read");
    assert_eq!(last.iter().map(|record| &record["id"]).collect::<Vec<_>>(), [&json!(2), &json!(3)]);
    assert_eq!((store.state::<u64>("a").expect("read"), store.state::<u64>("b").expect("read")), (Some(7), None));
}

#[test]
fn a_record_is_replaced_by_one_of_its_time_and_number() {
    let store = Store::in_memory(LIMITS).expect("a store");
    store.write(&[item(Kind::Update, "a", 10, 1), item(Kind::Update, "a", 10, 2)]).expect("written");
    let json = br#"{"id": 1, "step": "done"}"#.to_vec();
    let again = Item::Record { kind: Kind::Update, host: "a".to_owned(), at_ms: 10, id: 1, json };
    store.write(&[again]).expect("written");
    let all: Vec<Value> = store.last(Kind::Update, "a", 9).expect("read");
    assert_eq!((all.len(), &all[0]), (2, &json!({ "id": 1, "step": "done" })));
}

#[test]
fn a_file_of_the_release_before_updates_were_kept_gets_their_table() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("history.redb");
    let (store, _) = Store::open(&path, LIMITS).expect("a store");
    store.write(&[item(Kind::Event, "a", 10, 1)]).expect("written");
    let transaction = store.database.begin_write().expect("begun");
    assert!(transaction.delete_table(tables::UPDATES).expect("deleted"));
    transaction.commit().expect("written");
    drop(store);
    let (store, moved) = Store::open(&path, LIMITS).expect("a store");
    assert!(moved.is_none() && ids(&store, Kind::Update, "a", 0, u64::MAX).is_empty());
    assert_eq!(ids(&store, Kind::Event, "a", 0, u64::MAX), [1]);
}

#[test]
fn records_that_are_too_old_are_removed() {
    let store = Store::in_memory(LIMITS).expect("a store");
    store.write(&[item(Kind::Event, "a", 1000, 1), item(Kind::Log, "a", 3_600_500, 2)]).expect("written");
    store.prune(3_601_001).expect("pruned");
    assert!(ids(&store, Kind::Event, "a", 0, u64::MAX).is_empty());
    assert_eq!(ids(&store, Kind::Log, "a", 0, u64::MAX), [2]);
}

#[test]
fn a_flood_costs_the_oldest_records_and_the_file_stays_within_its_size() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("history.redb");
    let limits = Limits { bytes: 4 << 20, age: Duration::MAX };
    let (store, _) = Store::open(&path, limits).expect("a store");
    for round in 0..40 {
        // Every tenth round comes at one moment.
        let at = |id: u64| if round % 10 == 9 { round * 1000 } else { round * 1000 + id };
        let items: Vec<Item> = (0..1000).map(|id| item(Kind::Log, "a", at(id), round * 1000 + id)).collect();
        store.write(&items).expect("written");
        store.prune(u64::MAX).expect("pruned");
    }
    let length = fs::metadata(&path).expect("a file").len();
    assert!(length <= limits.bytes, "{length}");
    let kept = ids(&store, Kind::Log, "a", 0, u64::MAX);
    assert_eq!(kept.last(), Some(&39_999));
    assert!(kept.len() > 5000 && kept.windows(2).all(|pair| pair[0] < pair[1]), "{}", kept.len());
}

#[test]
fn a_full_disk_is_named_and_kept_records_are_still_read() {
    let store = Store::over(Disk(InMemoryBackend::new(), 3 << 20), LIMITS).expect("a store");
    let mut written = 0;
    let error = loop {
        assert!(written < 100_000, "the disk is never full");
        let items: Vec<Item> = (written..written + 500).map(|id| item(Kind::Log, "a", id, id)).collect();
        match store.write(&items) {
            Ok(_) => written += 500,
            Err(error) => break error,
        }
    };
    assert!(written > 0 && matches!(error, HistoryError::Full { .. }), "{error}");
    assert!(error.to_string().contains("lower --history-size"), "{error}");
    let again = store.write(&[]).expect_err("the disk is still full");
    assert!(matches!(again, HistoryError::Failed { .. } | HistoryError::Full { .. }), "{again}");
}

#[test]
fn a_file_is_one_services_only() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("history.redb");
    let _first = Store::open(&path, LIMITS).expect("a store");
    let error = Store::open(&path, LIMITS).expect_err("it is in use");
    assert!(error.to_string().contains("in use by another service"), "{error}");
    let error = Store::open(Path::new("/proc/no/such"), LIMITS).expect_err("no folder");
    assert!(matches!(error, HistoryError::Failed { .. }), "{error}");
}

/// The bytes of a file with some records: closed, or as a service that was killed leaves it.
fn written(is_closed: bool) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("history.redb");
    let (store, _) = Store::open(&path, LIMITS).expect("a store");
    let items: Vec<Item> = (0..2000).map(|id| item(Kind::Event, "a", id, id)).collect();
    store.write(&items).expect("written");
    match is_closed {
        true => drop(store),
        false => return fs::read(&path).expect("read"),
    }
    fs::read(&path).expect("read")
}

#[test]
fn a_file_that_is_no_database_is_moved_aside() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("history.redb");
    for content in [&b"# no database"[..], &[0; 1 << 16], &written(true)[..9000]] {
        fs::write(&path, content).expect("written");
        let (store, moved) = Store::open(&path, LIMITS).expect("another is begun");
        let (aside, damage) = moved.expect("it was damaged");
        assert!(matches!(damage, HistoryError::Damaged { .. }), "{damage}");
        assert_eq!(fs::read(aside).expect("it is there"), content);
        store.write(&[item(Kind::Event, "a", 1, 1)]).expect("written");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_damage_leaves_a_history_that_takes_records(
        is_closed in any::<bool>(),
        damages in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = written(is_closed);
        for (place, value) in damages {
            // Half of them in the file's head, which leads to everything else.
            let length = if value % 2 == 0 { 8192 } else { bytes.len() };
            bytes[place.index(length)] ^= value | 1;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("history.redb");
        fs::write(&path, bytes).expect("written");
        let (store, _) = Store::open(&path, LIMITS).expect("it is used or moved aside");
        let _ = ids(&store, Kind::Event, "a", 0, u64::MAX);
        store.write(&[item(Kind::Event, "b", 1, 1)]).expect("written");
        prop_assert_eq!(ids(&store, Kind::Event, "b", 0, u64::MAX), [1]);
    }
}
