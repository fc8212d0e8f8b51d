//! The word that was most likely meant.

/// The word among `known` that needs the fewest changes to become `given`, if that is close enough to be worth a hint.
pub(super) fn nearest<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let given = given.to_ascii_lowercase();
    known
        .map(|word| (strsim::osa_distance(&given, word), word))
        .min_by_key(|(changes, _)| *changes)
        .filter(|(changes, word)| *changes <= (word.len() / 4).max(1))
        .map(|(_, word)| word)
}
