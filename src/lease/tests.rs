use super::*;

#[test]
fn a_key_has_1_to_1024_bytes_and_no_nul() {
    assert!("k".parse::<Key>().is_ok());
    assert!("é".repeat(512).parse::<Key>().is_ok());
    assert!("é".repeat(513).parse::<Key>().is_err());
    assert!("".parse::<Key>().is_err());
    assert!("a\0b".parse::<Key>().is_err());
}

#[test]
fn fresh_holders_differ_and_never_outgrow_their_limit() {
    let a = Holder::fresh("web-3").expect("a plain name");
    let b = Holder::fresh("web-3").expect("a plain name");
    assert_ne!(a, b);
    assert!(a.as_str().starts_with("web-3-"));
    for long in [
        "n".repeat(HOLDER_MAX_BYTES),
        format!("x{}", "é".repeat(127)),
    ] {
        let holder = Holder::fresh(&long).expect("a long name is shortened");
        assert!((HOLDER_MAX_BYTES - 1..=HOLDER_MAX_BYTES).contains(&holder.as_str().len()));
    }
    assert!(Holder::fresh(&"n".repeat(HOLDER_MAX_BYTES + 1)).is_err());
    assert!(Holder::fresh("").is_err());
}

#[test]
fn a_fence_is_a_whole_number_from_1_on() {
    assert_eq!("1".parse::<Fence>().map(Fence::get), Ok(1));
    assert_eq!(
        "1796098343884123".parse::<Fence>().map(Fence::get),
        Ok(1_796_098_343_884_123)
    );
    for bad in ["", "seven", "0", "-1", "1.5", "9223372036854775808", "0x10"] {
        assert!(bad.parse::<Fence>().is_err(), "{bad}");
    }
}
