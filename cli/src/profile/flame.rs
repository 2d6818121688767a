// SPDX-License-Identifier: MIT OR Apache-2.0
//! A flame graph: a box for each function in each stack, as wide as its share of the samples, on top of its caller.
//! In a browser, a script in the file zooms and searches.

use std::fmt::Write as _;

use super::stacks::{Stack, Stacks};

const WIDTH: f64 = 1200.0;
const ROW: usize = 18;
const MARGIN: f64 = 10.0;
const HEAD: usize = 40;
/// The width of a character of the font, about.
const LETTER: f64 = 6.6;
/// The script of the picture.
const SCRIPT: &str = include_str!("flame.js");
/// The width below which a box is hidden until it is zoomed in on.
const NARROWEST: f64 = 0.2;

/// The field and the button, which the script shows: without it they do nothing.
const CONTROLS: &str = "<foreignObject class=\"controls\" display=\"none\" x=\"760\" y=\"8\" width=\"450\" height=\"26\">\
    <div xmlns=\"http://www.w3.org/1999/xhtml\" style=\"text-align: right; font: 12px monospace\">\
    <span class=\"found\" role=\"status\"></span> <input type=\"search\" aria-label=\"Mark functions by name\" \
    placeholder=\"mark functions\" size=\"20\"/> <button type=\"button\">reset</button></div></foreignObject>\n";

/// A function above its caller.
struct Box {
    from: u64,
    samples: u64,
    depth: usize,
}

/// Draws the picture with this title.
pub fn draw(stacks: &Stacks, title: &str) -> String {
    let total = stacks.total().max(1);
    let deepest = stacks.0.iter().map(|stack| stack.frames.len()).max().unwrap_or(0);
    let height = HEAD + (deepest + 1) * ROW + MARGIN as usize;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"flame\" width=\"{0}\" height=\"{height}\" viewBox=\"0 0 {0} \
         {height}\" font-family=\"monospace\" font-size=\"11\">\n<style>.box {{ cursor: pointer }} .marked rect {{ fill: \
         #c77dff }}</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#fffdf6\"/>\n\
         <text x=\"{MARGIN}\" y=\"24\" font-size=\"15\">{1}</text>\n{CONTROLS}",
        WIDTH + 2.0 * MARGIN,
        escape(title)
    );
    let bottom = height - MARGIN as usize - ROW;
    let mut put = |name: &str, at: &Box| {
        let _ = svg.write_str(&drawn(name, at, bottom - at.depth * ROW, total));
    };
    put("all", &Box { from: 0, samples: total, depth: 0 });
    place(&stacks.0, 0, 0, &mut put);
    // The script has no `]]>`: a test reads it back.
    let _ = write!(svg, "<script><![CDATA[\n{SCRIPT}]]></script>\n</svg>\n");
    svg
}

/// Places the boxes at `depth` of stacks that are equal up to there.
fn place(stacks: &[Stack], depth: usize, mut from: u64, put: &mut impl FnMut(&str, &Box)) {
    for group in stacks.chunk_by(|one, other| one.frames.get(depth) == other.frames.get(depth)) {
        let samples = group.iter().map(|stack| stack.samples).sum();
        if let Some(name) = group[0].frames.get(depth) {
            put(name, &Box { from, samples, depth: depth + 1 });
            place(group, depth + 1, from, put);
        }
        from += samples;
    }
}

fn drawn(name: &str, &Box { from, samples, depth }: &Box, y: usize, total: u64) -> String {
    let (x, width) = (MARGIN + share(from, total) * WIDTH, share(samples, total) * WIDTH);
    let letters = ((width - 4.0) / LETTER).max(0.0) as usize;
    let label: String = if letters < 3 { String::new() } else { name.chars().take(letters).collect() };
    let (colour, display) = (colour(name), if width < NARROWEST { " display=\"none\"" } else { "" });
    let name = escape(name);
    format!(
        "<g class=\"box\"{display} data-name=\"{name}\" data-from=\"{from}\" data-samples=\"{samples}\" \
         data-depth=\"{depth}\"><title>{name}: {samples} samples, {:.2} %</title><rect x=\"{x:.2}\" y=\"{y}\" width=\"{width:.2}\" \
         height=\"{}\" fill=\"{colour}\" rx=\"1\"/><text x=\"{:.2}\" y=\"{}\">{}</text></g>\n",
        share(samples, total) * 100.0,
        ROW - 1,
        x + 2.0,
        y + 13,
        escape(&label)
    )
}

/// Guests green, idle time grey, the rest in warm colours that are the function's own.
fn colour(name: &str) -> String {
    let hash = name.bytes().fold(5381_u32, |hash, byte| hash.wrapping_mul(33) ^ u32::from(byte));
    let (hue, light) = (10 + hash % 45, 62 + hash / 64 % 14);
    match name {
        "idle" | "all" => "#d0d0d0".to_owned(),
        _ if name.starts_with("guest ") => "#9ccf8f".to_owned(),
        _ => format!("hsl({hue},85%,{light}%)"),
    }
}

fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
#[path = "flame_tests.rs"]
mod tests;
