// SPDX-License-Identifier: MIT OR Apache-2.0
//! Rules of the picture, as a terminal shows it.

use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::super::rates::between;
use super::super::samples::{guest, reading};
use super::*;

fn screen() -> Screen {
    Screen::new(between(&reading(10), &reading(12)), Sort::Cpu)
}

/// The lines of a terminal of this size, without blanks at their ends.
fn lines(screen: &Screen, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
    terminal.draw(|frame| screen.draw(frame)).expect("drawn");
    let buffer = terminal.backend().buffer();
    let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
    (0..height).map(line).collect()
}

fn key(code: KeyCode) -> KeyEvent {
    KeyEvent::new(code, KeyModifiers::NONE)
}

#[test]
fn a_host_is_drawn_with_its_cpus_and_its_guests() {
    let lines = lines(&screen(), 110, 12);
    let expected = [
        "Baton 0.1.0, generation 3, up 12 s, memory 1 GiB of 2 GiB free",
        "",
        "CPU  STATE    GUEST%  HOST%   IDLE%   VCPUS",
        "0    online   75.0    5.0     20.0    web/0 db/0",
        "1    offline  -       -       -",
        "",
        "GUEST            STATE     VCPUS MEMORY     CPU%*   WAIT%                  EXITS/S   BY KIND",
        "web              running   1     64 MiB     50.0    10.0 (vCPU 0:10)       30        halt 20, port 10",
        "db               running   1     128 MiB    25.0    0.0                    300       halt 200, port 100",
        "",
        "",
    ];
    assert_eq!(lines[..11], expected, "{lines:#?}");
    assert!(lines[11].starts_with("q quit"), "{}", lines[11]);
}

#[test]
fn keys_change_the_order_and_leave() {
    let mut screen = screen();
    let first = |screen: &Screen| lines(screen, 110, 12)[7].split(' ').next().map(str::to_owned);
    assert_eq!(first(&screen).as_deref(), Some("web"));
    for (code, name, column) in [
        ('e', "db", "EXITS/S*"),
        ('w', "web", "WAIT%*"),
        ('m', "db", "MEMORY*"),
        ('c', "web", "CPU%*"),
        ('n', "db", "GUEST*"),
    ] {
        assert_eq!(screen.press(key(KeyCode::Char(code))), Flow::Stay);
        assert_eq!(first(&screen).as_deref(), Some(name), "{code}");
        assert!(lines(&screen, 110, 12)[6].contains(column), "{column}");
    }
    assert_eq!(screen.press(key(KeyCode::F(1))), Flow::Stay);
    for quit in [key(KeyCode::Char('q')), key(KeyCode::Esc), KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)] {
        assert_eq!(screen.press(quit), Flow::Quit);
    }
}

#[test]
fn more_guests_than_lines_are_reached_by_keys() {
    let mut now = reading(12);
    now.guests = (0..100).map(|number| guest(&format!("guest-{number:02}"), 1 << 20, 5)).collect();
    let mut screen = Screen::new(between(&reading(10), &now), Sort::Name);
    let first = |screen: &Screen| lines(screen, 110, 12)[7].split(' ').next().map(str::to_owned);
    screen.press(key(KeyCode::Down));
    assert_eq!(first(&screen).as_deref(), Some("guest-01"));
    screen.press(key(KeyCode::End));
    screen.press(key(KeyCode::Down));
    assert_eq!(first(&screen).as_deref(), Some("guest-99"));
    // The guests are fewer meanwhile.
    screen.show(between(&reading(10), &reading(12)));
    assert_eq!(first(&screen).as_deref(), Some("web"));
    screen.press(key(KeyCode::Up));
    assert_eq!(first(&screen).as_deref(), Some("db"));
}

#[test]
fn a_terminal_of_any_size_is_drawn_on() {
    for (width, height) in [(1, 1), (5, 3), (20, 2), (300, 1), (40, 100)] {
        lines(&screen(), width, height);
    }
}
