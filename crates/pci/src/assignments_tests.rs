// SPDX-License-Identifier: MIT OR Apache-2.0
use std::collections::BTreeMap;
use std::string::ToString;
use std::vec::Vec;
use std::{format, vec};

use proptest::prelude::*;

use super::*;
use crate::groups::{Member, Role};

const MOST: usize = 3;
const GUESTS: [&str; 3] = ["web", "mail", "db"];

fn place(slot: u8, function: u8) -> Bdf {
    Bdf::new(0, 0, slot, function).unwrap()
}

/// Devices of a bus, in slots 1 to 7; the two functions of slot 1 are one group.
fn groups() -> Groups {
    let device = |slot, function, is_multifunction| Member {
        place: place(slot, function),
        role: Role::Device,
        is_multifunction,
        acs: None,
    };
    let alone = (2..8).map(|slot| device(slot, 0, false));
    Groups::new(&alone.chain((0..2).map(|function| device(1, function, true))).collect::<Vec<_>>(), &[(0, 0)])
}

fn of(slot: u8, guest: &str, without_reset: bool) -> Assignment {
    Assignment { place: place(slot, 0), guest: guest.to_owned(), without_reset }
}

/// Slot 2 is named by two guests, slot 3 by one.
fn configured() -> Vec<Assignment> {
    vec![of(2, "web", true), of(3, "web", false), of(2, "mail", false)]
}

fn assign(changes: &mut Changes, wanted: Assignment) -> Result<(), AssignError> {
    let (configured, groups) = (configured(), groups());
    changes.assign(wanted, &Limits { configured: &configured, groups: &groups, most: MOST })
}

fn release(changes: &mut Changes, slot: u8, guest: Option<&str>) -> Result<String, AssignError> {
    let owner = changes.owner(place(slot, 0), guest, &configured())?;
    changes.release(place(slot, 0), &owner, &configured())?;
    Ok(owner)
}

fn functions(changes: &Changes, guest: &str) -> Vec<(u8, bool)> {
    let configured = configured();
    let its = changes.all(&configured).filter(|assignment| assignment.guest == guest);
    its.map(|assignment| (assignment.place.device(), assignment.without_reset)).collect()
}

#[test]
fn a_function_goes_to_another_guest_and_back() {
    let mut changes = Changes::new();
    assert_eq!(functions(&changes, "web"), [(2, true), (3, false)]);
    assert_eq!(release(&mut changes, 3, None).as_deref(), Ok("web"));
    assert_eq!(functions(&changes, "web"), [(2, true)]);
    assert_eq!(assign(&mut changes, of(3, "mail", true)), Ok(()));
    assert_eq!(functions(&changes, "mail"), [(2, false), (3, true)]);
    assert!(assign(&mut changes, of(3, "web", false)).is_err());
    assert_eq!(release(&mut changes, 3, Some("mail")).as_deref(), Ok("mail"));
    assert_eq!(assign(&mut changes, of(3, "web", false)), Ok(()));
    assert_eq!(changes, Changes::new());
}

#[test]
fn functions_follow_the_configured_ones_in_the_order_of_their_assignment() {
    let mut changes = Changes::new();
    assert_eq!(assign(&mut changes, of(7, "mail", false)), Ok(()));
    assert_eq!(assign(&mut changes, of(5, "mail", false)), Ok(()));
    assert_eq!(functions(&changes, "mail"), [(2, false), (7, false), (5, false)]);
}

/// A permission of a host.toml stays; one that was given by the operator lasts as long as the change.
#[test]
fn a_configured_function_is_permitted_without_a_reset_as_configured_or_asked() {
    let mut changes = Changes::new();
    for slot in [2, 3] {
        assert_eq!(release(&mut changes, slot, Some("web")).as_deref(), Ok("web"));
    }
    assert_eq!(release(&mut changes, 2, None).as_deref(), Ok("mail"));
    assert_eq!(assign(&mut changes, of(2, "web", false)), Ok(()));
    assert_eq!(assign(&mut changes, of(3, "web", true)), Ok(()));
    assert_eq!(functions(&changes, "web"), [(2, true), (3, true)]);
    assert_eq!(release(&mut changes, 3, None).as_deref(), Ok("web"));
    assert_eq!(functions(&changes, "web"), [(2, true)]);
}

#[test]
fn a_change_is_refused_with_reason_and_hint() {
    let mut changes = Changes::new();
    let shown = |result: Result<(), AssignError>| result.map_err(|error| format!("{error}; {}", error.hint()));
    let refused = |changes: &mut Changes, wanted| shown(assign(changes, wanted)).unwrap_err();
    assert_eq!(
        refused(&mut changes, of(3, "mail", false)),
        "PCI function 0000:00:03.0 is assigned to guest 'web'; `baton pci release 0000:00:03.0 web` first"
    );
    assert_eq!(
        refused(&mut changes, of(3, "web", false)),
        "PCI function 0000:00:03.0 is assigned to guest 'web' already; it has the function from its next start on: \
         `baton vm start web`"
    );
    assert_eq!(assign(&mut changes, of(1, "web", false)), Ok(()));
    let other = Assignment { place: place(1, 1), ..of(1, "mail", false) };
    assert_eq!(
        assign(&mut changes, other).unwrap_err().to_string(),
        "0000:00:01.1 is not isolated from 0000:00:01.0 (web); assign all of an isolation group to one guest"
    );
    assert_eq!(
        refused(&mut changes, of(4, "web", false)),
        "guest 'web' is assigned 3 PCI functions, the most that are possible; release one first: `baton pci release \
         FUNCTION web`"
    );
    assert!(refused(&mut changes, of(9, "mail", false)).starts_with("there is no function 0000:00:09.0"));
    let refused = |changes: &mut Changes, slot, guest| shown(release(changes, slot, guest).map(|_| ())).unwrap_err();
    assert_eq!(
        refused(&mut changes, 4, None),
        "PCI function 0000:00:04.0 is assigned to no guest; `baton pci` lists functions and their guests"
    );
    assert_eq!(
        refused(&mut changes, 3, Some("mail")),
        "PCI function 0000:00:03.0 is not assigned to guest 'mail', but to web; name the guest: `baton pci release \
         0000:00:03.0 web`"
    );
    assert_eq!(
        refused(&mut changes, 2, None),
        "PCI function 0000:00:02.0 is assigned to several guests: web, mail; name the guest: `baton pci release \
         0000:00:02.0 web`"
    );
}

#[test]
fn as_many_changes_are_kept_as_can_be_handed_over() {
    let mut changes = Changes::new();
    for number in 0..=MAX_CHANGES {
        changes.adopt_assigned(of(7, &format!("guest-{number}"), false));
        changes.adopt_released(place(6, 0), format!("guest-{number}"));
    }
    assert_eq!(changes.count(), MAX_CHANGES);
    assert_eq!(assign(&mut changes, of(4, "db", false)), Err(AssignError::TooManyChanges));
    assert_eq!(release(&mut changes, 3, Some("web")), Err(AssignError::TooManyChanges));
    assert_eq!(release(&mut changes, 7, Some("guest-0")).as_deref(), Ok("guest-0"));
    assert_eq!(release(&mut changes, 3, Some("web")).as_deref(), Ok("web"));
    assert_eq!(changes.count(), MAX_CHANGES);
    // Back to what is configured: no further difference.
    assert_eq!(assign(&mut changes, of(3, "web", false)), Ok(()));
    assert_eq!(changes.count(), MAX_CHANGES - 1);
}

/// The plain model: guests by function, and whether each is permitted without a reset.
type Model = BTreeMap<(Bdf, &'static str), bool>;

fn may_assign(model: &Model, at: Bdf, guest: &str) -> bool {
    let is_device = (1..8).contains(&at.device()) && at.function() < if at.device() == 1 { 2 } else { 1 };
    let in_group = |other: Bdf| other == at || (other.device(), at.device()) == (1, 1);
    let is_free = model.keys().all(|(other, owner)| !in_group(*other) || (*owner == guest && *other != at));
    is_device && is_free && model.keys().filter(|(_, owner)| *owner == guest).count() < MOST
}

fn model_of(changes: &Changes) -> Model {
    let known = |name: &str| GUESTS.into_iter().find(|guest| *guest == name).unwrap();
    changes.all(&configured()).map(|one| ((one.place, known(&one.guest)), one.without_reset)).collect()
}

fn copy_of(changes: &Changes) -> Changes {
    let mut copy = Changes::new();
    changes.assigned().iter().for_each(|assignment| copy.adopt_assigned(assignment.clone()));
    changes.released().iter().for_each(|(place, guest)| copy.adopt_released(*place, guest.clone()));
    copy
}

#[derive(Clone, Debug)]
enum Step {
    Assign(Bdf, usize, bool),
    Release(Bdf, Option<usize>),
}

fn step() -> impl Strategy<Value = Step> {
    let place = || (1..9u8, 0..2u8).prop_map(|(slot, function)| place(slot, function));
    prop_oneof![
        (place(), 0..3usize, any::<bool>()).prop_map(|(place, guest, reset)| Step::Assign(place, guest, reset)),
        (place(), prop::option::of(0..3usize)).prop_map(|(place, guest)| Step::Release(place, guest)),
    ]
}

proptest! {
    /// Any order of requests does what the model does, also with a new image after each, and leaves no trace once all
    /// is as configured.
    #[test]
    fn any_changes_are_the_models(steps in prop::collection::vec(step(), 0..60)) {
        let (mut changes, configured) = (Changes::new(), configured());
        let mut model = model_of(&changes);
        for step in steps {
            match step {
                Step::Assign(at, guest, reset) => {
                    let guest = GUESTS[guest];
                    let wanted = Assignment { place: at, guest: guest.to_owned(), without_reset: reset };
                    let is_wanted = may_assign(&model, at, guest);
                    prop_assert_eq!(assign(&mut changes, wanted).is_ok(), is_wanted);
                    if is_wanted {
                        let named = configured.iter().any(|other| other.is(at, guest) && other.without_reset);
                        model.insert((at, guest), reset || named);
                    }
                }
                Step::Release(at, guest) => {
                    let owners: Vec<&str> = model.keys().filter(|(other, _)| *other == at).map(|(_, owner)| *owner).collect();
                    let owner = match (guest.map(|guest| GUESTS[guest]), owners.as_slice()) {
                        (Some(guest), owners) => owners.contains(&guest).then_some(guest),
                        (None, [owner]) => Some(*owner),
                        (None, _) => None,
                    };
                    let found = changes.owner(at, guest.map(|guest| GUESTS[guest]), &configured).ok();
                    prop_assert_eq!(found.as_deref(), owner);
                    if let Some(owner) = owner {
                        prop_assert_eq!(changes.release(at, owner, &configured), Ok(()));
                        model.remove(&(at, owner));
                    }
                }
            }
            prop_assert_eq!(&copy_of(&changes), &changes);
            prop_assert_eq!(&model_of(&changes), &model);
        }
        for (at, guest) in model.into_keys() {
            prop_assert_eq!(changes.release(at, guest, &configured), Ok(()));
        }
        prop_assert_eq!(changes.assigned(), &[]);
        prop_assert_eq!(changes.released().len(), configured.len());
    }
}
