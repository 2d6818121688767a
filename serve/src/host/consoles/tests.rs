// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of kept consoles.

use proptest::prelude::*;

use super::*;

fn chosen(names: &[&str]) -> Choice {
    Choice { is_all: false, names: names.iter().map(|&name| name.to_owned()).collect() }
}

fn piece(text: &str, lost: u64, end: u64) -> Option<Piece> {
    Some(Piece { end, text: text.to_owned(), lost })
}

#[test]
fn a_follower_reads_from_its_own_place() {
    let consoles = Consoles::default();
    assert_eq!(consoles.read("web", 0), None);
    consoles.note("web", b"login: ");
    consoles.note("db", b"x");
    assert_eq!(consoles.read("web", 0), piece("login: ", 0, 7));
    assert_eq!(consoles.read("web", 7), None);
    consoles.note("web", b"root\r\n");
    assert_eq!(consoles.read("web", 7), piece("root\r\n", 0, 13));
    assert_eq!(consoles.read("web", 99), piece("login: root\r\n", 0, 13), "the place is another service's");
}

#[test]
fn a_slow_follower_loses_the_oldest_bytes_and_learns_how_many() {
    let consoles = Consoles::default();
    consoles.note("web", b"abc");
    consoles.note("web", &[b'x'; MAX_BYTES]);
    assert_eq!(consoles.read("web", 0).map(|piece| piece.lost), Some(0), "a new one has lost nothing");
    let read = consoles.read("web", 1).expect("a piece");
    assert_eq!((read.lost, read.end, read.text.len()), (2, 3 + PIECE_BYTES as u64, PIECE_BYTES));
}

#[test]
fn a_character_that_was_cut_waits_for_its_rest() {
    let consoles = Consoles::default();
    consoles.note("web", "a€".as_bytes().split_last().expect("bytes").1);
    assert_eq!(consoles.read("web", 0), piece("a", 0, 1));
    assert_eq!(consoles.read("web", 1), None);
    consoles.note("web", &["€".as_bytes()[2], 0xff, b'b']);
    assert_eq!(consoles.read("web", 1), piece("€\u{fffd}b", 0, 6));
}

#[test]
fn a_pause_is_marked_where_something_was_kept_before_and_not_where_output_went_on() {
    let consoles = Consoles::default();
    let text = |guest: &str| consoles.read(guest, 0).map(|piece| piece.text);
    consoles.note("web", b"a");
    consoles.note("log", b"b");
    consoles.note_choice(&chosen(&["log"]));
    consoles.note_choice(&chosen(&["log", "web", "db"]));
    assert_eq!(text("web"), Some("a\r\n[baton serve: nothing was received for 0 s]\r\n".to_owned()));
    assert_eq!((text("log"), text("db")), (Some("b".to_owned()), None));
    consoles.note_choice(&Choice { is_all: true, ..Choice::default() });
    assert_eq!(text("log"), Some("b".to_owned()));
}

#[test]
fn followers_are_counted() {
    let consoles = Arc::new(Consoles::default());
    let follow = |names: &[&str]| consoles.follow(Some(names.iter().map(|&name| name.to_owned()).collect()));
    let (one, two, all) = (follow(&["web", "db"]), follow(&["web"]), consoles.follow(None));
    assert!(one.has("db") && !two.has("db") && all.has("db"));
    assert_eq!(consoles.choice(), Choice { is_all: true, ..Choice::default() });
    drop(all);
    assert_eq!(consoles.choice(), chosen(&["db", "web"]));
    drop(one);
    assert_eq!(consoles.choice(), chosen(&["web"]));
    drop(two);
    assert_eq!(consoles.choice(), Choice::default());
    let many: Vec<String> = (0..65).map(|number| number.to_string()).collect();
    let _many = consoles.follow(Some(many));
    assert!(consoles.choice().is_all, "a request with all these names fits no frame");
}

#[test]
fn a_choice_includes_those_that_have_no_other_guest() {
    let all = Choice { is_all: true, ..Choice::default() };
    assert!(all.includes(&chosen(&["web"])) && all.includes(&all) && chosen(&["web"]).includes(&Choice::default()));
    assert!(!chosen(&["web"]).includes(&all) && !chosen(&["web"]).includes(&chosen(&["db"])));
}

#[test]
fn memory_is_bounded_whatever_names_and_bytes_come() {
    let consoles = Consoles::default();
    for number in 0..10 * MAX_GUESTS {
        consoles.note(&number.to_string(), &vec![0; number * 1000]);
    }
    let kept = consoles.kept();
    assert!(kept.len() == MAX_GUESTS && kept.values().all(|ring| ring.bytes.len() <= MAX_BYTES));
}

proptest! {
    /// However output is cut and whenever it is read, a follower that keeps up gets all of it, once and in order.
    #[test]
    fn a_follower_that_keeps_up_gets_all(text in any::<String>(), cuts in prop::collection::vec(1..9usize, 1..99)) {
        let consoles = Consoles::default();
        let (mut read, mut place, mut rest) = (String::new(), 0, text.as_bytes());
        for cut in cuts.iter().cycle() {
            let (now, later) = rest.split_at(rest.len().min(*cut));
            consoles.note("web", now);
            rest = later;
            while let Some(piece) = consoles.read("web", place) {
                prop_assert_eq!(piece.lost, 0);
                (read, place) = (read + &piece.text, piece.end);
            }
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(read, text);
    }

    /// Any bytes: reading ends, and no place is read twice.
    #[test]
    fn any_bytes_are_read_to_their_end(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40_000), 0..6),
        from in any::<u64>()) {
        let consoles = Consoles::default();
        pieces.iter().for_each(|bytes| consoles.note("web", bytes));
        let total: usize = pieces.iter().map(Vec::len).sum();
        let mut place = from;
        for turn in 0.. {
            prop_assert!(turn < 6, "a ring is four pieces, and one from each place in between");
            let Some(piece) = consoles.read("web", place) else { break };
            prop_assert!(piece.end <= total as u64 && (piece.end > place || place > total as u64));
            place = piece.end;
        }
    }
}
