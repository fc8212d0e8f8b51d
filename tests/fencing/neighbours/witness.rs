//! What the holders of a key have noted themselves: "in ours 7" at the beginning of a term and "out ours 7" at its end, in one
//! journal a key. Nothing in it comes from the table.

use std::ops::Add;

/// How many terms each side had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) ours: u32,
    pub(super) theirs: u32,
    /// How many of theirs had a fence that was no larger than all before it.
    pub(super) back: u32,
}

impl Add for Seen {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            ours: self.ours + other.ours,
            theirs: self.theirs + other.theirs,
            back: self.back + other.back,
        }
    }
}

/// Reads a journal, and says what is wrong where there were two holders at once, or where a fence of ours did not grow.
pub(super) fn judge<L: AsRef<str>>(lines: &[L]) -> Result<Seen, String> {
    let mut seen = Seen::default();
    let mut inside = None;
    let mut largest = 0;
    for (at, line) in lines.iter().map(AsRef::as_ref).enumerate() {
        let wrong = |what: String| {
            let context: Vec<&str> = lines[at.saturating_sub(6)..=at]
                .iter()
                .map(AsRef::as_ref)
                .collect();
            Err(format!(
                "{what}; up to line {}: {}",
                at + 1,
                context.join(", ")
            ))
        };
        let words: Vec<&str> = line.split(' ').collect();
        let [way @ ("in" | "out"), who @ ("ours" | "theirs"), fence] = words[..] else {
            return wrong("a line that nobody writes".to_owned());
        };
        let Ok(fence) = fence.parse::<i64>() else {
            return wrong("no fence".to_owned());
        };
        if way == "out" {
            if inside != Some((who, fence)) {
                return wrong(format!("{who} {fence} leaves, but {inside:?} is in"));
            }
            inside = None;
            continue;
        }
        if let Some((other, its)) = inside {
            return wrong(format!(
                "two holders: {who} {fence} enters while {other} {its} is in"
            ));
        }
        inside = Some((who, fence));
        if who == "ours" {
            if fence <= largest {
                return wrong(format!("lease was given {fence} after {largest}"));
            }
            seen.ours += 1;
        } else {
            seen.back += u32::from(fence <= largest);
            seen.theirs += 1;
        }
        largest = largest.max(fence);
    }
    match inside {
        None => Ok(seen),
        Some((who, fence)) => Err(format!("{who} {fence} never left")),
    }
}

#[test]
fn a_journal_tells_two_holders_and_a_fence_of_ours_that_did_not_grow() {
    let judged = |lines: &str| judge(&lines.split(", ").collect::<Vec<_>>());
    assert_eq!(
        judged("in ours 5, out ours 5, in theirs 6, out theirs 6, in theirs 1, out theirs 1"),
        Ok(Seen {
            ours: 1,
            theirs: 2,
            back: 1
        })
    );
    let wrong = [
        (
            "in ours 5, in theirs 6, out theirs 6, out ours 5",
            "two holders",
        ),
        (
            "in theirs 5, in ours 6, out theirs 5, out ours 6",
            "two holders",
        ),
        ("in ours 5, in ours 6", "two holders"),
        ("in ours 5, out theirs 5", "leaves"),
        ("in ours 5, out ours 5, out ours 5", "leaves"),
        ("in ours 5", "never left"),
        (
            "in ours 5, out ours 5, in ours 5, out ours 5",
            "given 5 after 5",
        ),
        // The largest of all, not only the last one, which may itself have gone back.
        (
            "in ours 5, out ours 5, in theirs 1, out theirs 1, in ours 2, out ours 2",
            "given 2 after 5",
        ),
        ("in ours ", "no fence"),
        ("in 5", "nobody writes"),
    ];
    for (lines, what) in wrong {
        let said = judged(lines).expect_err(lines);
        assert!(said.contains(what), "{lines}: {said}");
    }
}
