//! A small explicit-state model checker: breadth first, so that a counterexample is as short as one can be.
//!
//! Written here because the ready-made one (stateright 0.31) brings twenty crates, among them an HTTP
//! server for its explorer and second copies of rand and getrandom, for what is one queue and one set.

use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// A system of states and steps, and what must never be seen in it.
pub(crate) trait Model {
    /// Everything that decides how the system can go on.
    type State: Clone + Eq + Hash;
    /// One step, as a counterexample names it.
    type Action: Copy + Debug;

    /// Where it begins.
    fn initial(&self) -> Self::State;

    /// Every step that `state` allows, each handed to `visit` with the state after it.
    fn steps(&self, state: &Self::State, visit: &mut dyn FnMut(Self::Action, Self::State));

    /// The one state that stands for all that go on in the same way as `state`.
    fn canonical(&self, state: &Self::State) -> Self::State;

    /// The rule that `state` breaks, if it breaks one.
    fn broken(&self, state: &Self::State) -> Option<&'static str>;
}

/// What a search of all states has found.
#[derive(Debug)]
pub(crate) enum Verdict<A> {
    /// Every reachable state was seen, and none breaks a rule.
    Holds {
        /// How many there are.
        states: usize,
    },
    /// A rule can be broken.
    Broken {
        /// The rule.
        rule: &'static str,
        /// A shortest way there.
        trace: Vec<A>,
        /// How many states were seen until then.
        states: usize,
    },
}

/// Visits every state that can be reached, until one breaks a rule.
///
/// States are told apart by a 64-bit fingerprint, as TLC and stateright do: with ten million states the chance that
/// two share one, so that a state is missed, is one in four hundred thousand.
pub(crate) fn search<M: Model>(model: &M) -> Verdict<M::Action> {
    let first = model.initial();
    let mut seen: HashSet<u64, BuildHasherDefault<Ready>> = HashSet::default();
    seen.insert(fingerprint(&model.canonical(&first)));
    // How each state was reached; the states themselves are kept for the frontier only.
    let mut origin: Vec<(u32, Option<M::Action>)> = vec![(0, None)];
    let mut frontier = vec![(0_u32, first)];
    while !frontier.is_empty() {
        let mut next = Vec::new();
        for (index, state) in &frontier {
            if let Some(rule) = model.broken(state) {
                return Verdict::Broken {
                    rule,
                    trace: trace(&origin, *index),
                    states: origin.len(),
                };
            }
            model.steps(state, &mut |action, after| {
                if seen.insert(fingerprint(&model.canonical(&after))) {
                    let name = u32::try_from(origin.len()).expect("fewer than four billion states");
                    origin.push((*index, Some(action)));
                    next.push((name, after));
                }
            });
        }
        frontier = next;
    }
    Verdict::Holds {
        states: origin.len(),
    }
}

/// The actions that led from the beginning to the state numbered `index`.
fn trace<A: Copy>(origin: &[(u32, Option<A>)], mut index: u32) -> Vec<A> {
    let mut way = Vec::new();
    while let (before, Some(action)) = origin[index as usize] {
        way.push(action);
        index = before;
    }
    way.reverse();
    way
}

fn fingerprint(state: &impl Hash) -> u64 {
    let mut mix = Mix(0x9e37_79b9_7f4a_7c15);
    state.hash(&mut mix);
    mix.finish()
}

/// A multiply-and-fold hash over whole integers, which a debug build gets through several times faster than through the
/// standard library's hash of bytes. The states are not chosen to make them collide.
struct Mix(u64);

impl Mix {
    fn add(&mut self, word: u64) {
        let fed = (self.0 ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15);
        let wide = u128::from(fed).wrapping_mul(0xa076_1d64_78bd_642f_e703_7ed1_a0b4_28db);
        self.0 = (wide as u64) ^ ((wide >> 64) as u64);
    }
}

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.add(u64::from(*byte)));
    }

    fn write_u8(&mut self, word: u8) {
        self.add(u64::from(word));
    }

    fn write_u16(&mut self, word: u16) {
        self.add(u64::from(word));
    }

    fn write_i16(&mut self, word: i16) {
        self.add(u64::from(word.cast_unsigned()));
    }

    // The discriminants of enums arrive as isize.
    fn write_isize(&mut self, word: isize) {
        self.add(word as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The set's own hash: the fingerprint is one already.
#[derive(Default)]
struct Ready(u64);

impl Hasher for Ready {
    fn write(&mut self, _bytes: &[u8]) {
        unreachable!("only fingerprints are hashed");
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = word;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
