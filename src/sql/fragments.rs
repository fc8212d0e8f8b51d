//! The pieces that several statements share: how a row is described, how a term ends, the clock as microseconds.

/// Replaces the `{word:argument}` fragments.
pub(super) fn expand(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        let end = start
            + rest[start..]
                .find('}')
                .expect("every fragment of a statement is closed");
        out.push_str(&rest[..start]);
        match rest[start + 1..end].split_once(':') {
            Some(("micros", instant)) => out.push_str(&micros(instant)),
            Some(("row", row_and_clock)) => out.push_str(&match row_and_clock.split_once(',') {
                Some((alias, now)) => row(alias, now),
                None => row(row_and_clock, &format!("{row_and_clock}.now")),
            }),
            Some(("ended", pair)) => {
                let (alias, hold) = pair
                    .split_once(',')
                    .expect("ended takes a row and a duration");
                out.push_str(&ended(alias, hold));
            }
            Some((other, _)) => unreachable!("no such fragment: {other}"),
            None => out.push_str(&rest[start..=end]),
        }
        rest = &rest[end + 1..];
    }
    out.push_str(rest);
    out
}

/// Microseconds since 1970. The operator by its schema, since this also stands in what is printed for others to run. Exact
/// as a double (before PostgreSQL 14) as well as as a numeric; below 2^53 until 2255.
fn micros(instant: &str) -> String {
    format!("(extract(epoch FROM {instant}) OPERATOR(pg_catalog.*) 1000000)::bigint")
}

/// `acquired_at, expires_at` of a term that ends now, or `hold` after it began. One microsecond apart at least, for the
/// CHECK; and never counted from a beginning that lies in the future because the clock was set back.
fn ended(alias: &str, hold: &str) -> String {
    format!(
        "e.began, greatest(e.now, e.began + {hold} * interval '1 microsecond')
          FROM (SELECT c.now, least({alias}.acquired_at, c.now - interval '1 microsecond') AS began
                  FROM (SELECT clock_timestamp() AS now) AS c) AS e"
    )
}

/// The columns that describe a row: key, state, holder (NULL when empty), fence, acquired_at, expires_at (text),
/// expires_in_ms, held_for_ms. Rows that others wrote may hold `infinity`, which can't be subtracted before PostgreSQL 17.
fn row(alias: &str, now: &str) -> String {
    let text = |column: &str| {
        format!(
            "CASE WHEN isfinite({alias}.{column})
                 THEN to_char({alias}.{column} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"')
                 ELSE {alias}.{column}::text END AS {column}"
        )
    };
    let (end, began) = (
        format!("{alias}.expires_at"),
        format!("{alias}.acquired_at"),
    );
    let millis =
        |from: &str, to: &str| format!("floor(extract(epoch FROM {to} - {from}) * 1000)::bigint");
    let expires_in = format!(
        "CASE WHEN isfinite({end}) THEN {} WHEN {end} > {now} THEN 9000000000000000
              ELSE -9000000000000000 END AS expires_in_ms",
        millis(now, &end)
    );
    // Nobody holds it any more once it has expired.
    let held_for = format!(
        "CASE WHEN isfinite({began}) AND {end} > {now} THEN {}
              WHEN isfinite({began}) AND isfinite({end}) THEN {}
              ELSE 9000000000000000 END AS held_for_ms",
        millis(&began, now),
        millis(&began, &end)
    );
    format!(
        "{alias}.key,
       CASE WHEN {alias}.holder <> '' AND {alias}.expires_at > {now} THEN 'held'
            WHEN {alias}.holder <> '' THEN 'expired'
            WHEN {alias}.expires_at > {now} THEN 'cooling'
            ELSE 'free' END AS state,
       nullif({alias}.holder, '') AS holder,
       {alias}.fence,
       {},
       {},
       {},
       {}",
        text("acquired_at"),
        text("expires_at"),
        expires_in,
        held_for,
    )
}
