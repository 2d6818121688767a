// SPDX-License-Identifier: MIT OR Apache-2.0
//! A terminal's picture of a host, and the keys that change it.

use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Row, Table};

use super::rates::{Sort, View};
use super::text::{CPU_COLUMNS, GUEST_COLUMNS, cpu_cells, guest_cells, host_line};

#[cfg(test)]
mod tests;

/// The widths of the columns but for the last ones, which take the rest.
const CPU_WIDTHS: [u16; 5] = [4, 8, 7, 7, 7];
const GUEST_WIDTHS: [u16; 7] = [16, 9, 5, 10, 7, 22, 9];
const KEYS: &str = "q quit  order: c CPU  w wait  e exits  m memory  n name  \u{2191}\u{2193} more guests";

/// The effect of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The picture may have changed.
    Stay,
    /// The person wants to leave.
    Quit,
}

/// The picture's state.
#[derive(Clone, Debug)]
pub struct Screen {
    view: View,
    sort: Sort,
    first_guest: usize,
}

impl Screen {
    /// Returns a picture with guests in this order.
    pub fn new(view: View, sort: Sort) -> Self {
        let mut screen = Self { view, sort, first_guest: 0 };
        screen.view.sort(sort);
        screen
    }

    /// Shows the next interval.
    pub fn show(&mut self, view: View) {
        self.view = view;
        self.view.sort(self.sort);
        self.first_guest = self.first_guest.min(self.view.guests.len().saturating_sub(1));
    }

    /// Takes a key.
    pub fn press(&mut self, key: KeyEvent) -> Flow {
        if key.kind == KeyEventKind::Release {
            return Flow::Stay;
        }
        let last = self.view.guests.len().saturating_sub(1);
        match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Flow::Quit,
            KeyCode::Char('q') | KeyCode::Esc => return Flow::Quit,
            KeyCode::Char('c') => self.sort_by(Sort::Cpu),
            KeyCode::Char('w') => self.sort_by(Sort::Wait),
            KeyCode::Char('e') => self.sort_by(Sort::Exits),
            KeyCode::Char('m') => self.sort_by(Sort::Memory),
            KeyCode::Char('n') => self.sort_by(Sort::Name),
            KeyCode::Down | KeyCode::Char('j') => self.first_guest = (self.first_guest + 1).min(last),
            KeyCode::Up | KeyCode::Char('k') => self.first_guest = self.first_guest.saturating_sub(1),
            KeyCode::Home => self.first_guest = 0,
            KeyCode::End => self.first_guest = last,
            _ => {}
        }
        Flow::Stay
    }

    fn sort_by(&mut self, sort: Sort) {
        (self.sort, self.first_guest) = (sort, 0);
        self.view.sort(sort);
    }

    /// Draws it. CPUs have half of the lines at most.
    pub fn draw(&self, frame: &mut Frame<'_>) {
        let area = frame.area();
        let cpu_lines = u16::try_from(self.view.cpus.len()).unwrap_or(u16::MAX).saturating_add(2);
        let [head, cpus, guests, keys] = Layout::vertical([
            Constraint::Length(2),
            Constraint::Length(cpu_lines.min(area.height / 2)),
            Constraint::Min(2),
            Constraint::Length(1),
        ])
        .areas(area);
        frame.render_widget(Line::from(host_line(&self.view.host)).style(bold()), head);
        self.draw_cpus(frame, cpus);
        self.draw_guests(frame, guests);
        frame.render_widget(Line::from(KEYS).style(Style::new().add_modifier(Modifier::DIM)), keys);
    }

    fn draw_cpus(&self, frame: &mut Frame<'_>, area: Rect) {
        let rows = self.view.cpus.iter().map(|row| Row::new(cpu_cells(row)));
        let table = Table::new(rows, widths(&CPU_WIDTHS)).header(Row::new(CPU_COLUMNS).style(header()));
        frame.render_widget(table, area);
    }

    fn draw_guests(&self, frame: &mut Frame<'_>, area: Rect) {
        let rows = self.view.guests.iter().skip(self.first_guest).map(|row| {
            let style = if row.waiting.is_empty() { Style::new() } else { bold() };
            Row::new(guest_cells(row)).style(style)
        });
        let table = Table::new(rows, widths(&GUEST_WIDTHS)).header(Row::new(self.guest_header()).style(header()));
        frame.render_widget(table, area);
    }

    /// Returns the columns' names; the one that orders is marked.
    fn guest_header(&self) -> [String; 8] {
        let by = match self.sort {
            Sort::Name => 0,
            Sort::Memory => 3,
            Sort::Cpu => 4,
            Sort::Wait => 5,
            Sort::Exits => 6,
        };
        let mut columns = GUEST_COLUMNS.map(str::to_owned);
        columns[by].push('*');
        columns
    }
}

fn widths(first: &[u16]) -> Vec<Constraint> {
    first.iter().map(|width| Constraint::Length(*width)).chain([Constraint::Fill(1)]).collect()
}

fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

fn header() -> Style {
    Style::new().add_modifier(Modifier::REVERSED)
}
