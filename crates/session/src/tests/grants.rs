// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of requests that come from guests.

use alloc::string::ToString;

use wire::Right;

use super::*;
use crate::Grant;

fn grant(role: Role) -> Grant {
    Grant { guest: "services".to_string(), role, console: false, dump: false, devices: false }
}

fn ask_of(guard: &mut Guard, grant: &Grant, body: RequestBody) -> Result<Admitted, Denied> {
    guard.admit_of_guest(body, grant, at(0), || Some([9; 32]))
}

#[test]
fn a_guest_s_clients_have_its_role_and_no_more() {
    let mut guard = Guard::new(vec![], Plain::Admitted);
    for has in ROLES {
        for body in [RequestBody::Info, stop(), RequestBody::PowerOff] {
            let needs = body.role();
            let refused = Denied::GuestRole { guest: "services".to_string(), has, needs };
            let expected = if has >= needs { Ok(Admitted::Request(body.clone(), None)) } else { Err(refused) };
            assert_eq!(ask_of(&mut guard, &grant(has), body), expected);
        }
    }
}

#[test]
fn no_role_includes_a_right() {
    let mut guard = Guard::new(vec![], Plain::Admitted);
    let name = || "web".to_string();
    for (body, right, with) in [
        (RequestBody::ConsoleInput { name: name(), bytes: vec![1] }, Right::Console, {
            Grant { console: true, ..grant(Role::Operate) }
        }),
        (RequestBody::VmLayout { name: name() }, Right::Dump, Grant { dump: true, ..grant(Role::Operate) }),
        (
            RequestBody::PciRelease { function: name(), guest: None, is_forced: false },
            Right::Devices,
            Grant { devices: true, ..grant(Role::Operate) },
        ),
    ] {
        let refused = Denied::GuestRight { guest: "services".to_string(), needs: right };
        assert_eq!(ask_of(&mut guard, &grant(Role::Update), body.clone()), Err(refused));
        assert_eq!(ask_of(&mut guard, &with, body.clone()), Ok(Admitted::Request(body.clone(), None)));
        let read = Grant { role: Role::Read, ..with };
        assert!(matches!(ask_of(&mut guard, &read, body), Err(Denied::GuestRole { .. })));
    }
}

#[test]
fn a_key_gives_a_guest_s_client_no_more_than_the_guest_has_and_is_demanded_where_there_are_keys() {
    for plain in [Plain::Denied, Plain::Admitted] {
        let mut guard = Guard::new(keys(), plain);
        assert_eq!(ask_of(&mut guard, &grant(Role::Update), RequestBody::Info), Err(Denied::NoSession));
        let mut signer = client(&mut guard, 3, 0, 1);
        let signed = RequestBody::Signed(signer.sign(&stop()).expect("a session"));
        let denied = ask_of(&mut guard, &grant(Role::Read), signed);
        assert!(matches!(denied, Err(Denied::GuestRole { has: Role::Read, .. })), "{denied:?}");
        let signed = RequestBody::Signed(signer.sign(&stop()).expect("a session"));
        let admitted = ask_of(&mut guard, &grant(Role::Operate), signed);
        assert_eq!(admitted, Ok(Admitted::Request(stop(), Some("update".to_string()))));
    }
}
