# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_lease_global_optspecs
    string join \n d/database-url= table= db-timeout= q/quiet v/verbose h/help V/version
end

function __fish_lease_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_lease_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_lease_using_subcommand
    set -l cmd (__fish_lease_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c lease -n "__fish_lease_needs_command" -s d -l database-url -d 'Connect to this database: a libpq URI or key=value string [default: PGHOST, PGUSER, PGSERVICE, ..., as for psql]' -r
complete -c lease -n "__fish_lease_needs_command" -l table -d 'Keep the leases in this table: schema.table, or only the name of a table in public' -r
complete -c lease -n "__fish_lease_needs_command" -l db-timeout -d 'Give up a database operation after this long, connecting included (10ms to 1day)' -r
complete -c lease -n "__fish_lease_needs_command" -s q -l quiet -d 'Print errors only; a skipped run then prints nothing'
complete -c lease -n "__fish_lease_needs_command" -s v -l verbose -d 'Report each step on stderr'
complete -c lease -n "__fish_lease_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c lease -n "__fish_lease_needs_command" -s V -l version -d 'Print version'
complete -c lease -n "__fish_lease_needs_command" -f -a "run" -d 'Run a job while holding a lease'
complete -c lease -n "__fish_lease_needs_command" -f -a "claim" -d 'Claim a lease in a script'
complete -c lease -n "__fish_lease_needs_command" -f -a "renew" -d 'Renew a lease that you hold'
complete -c lease -n "__fish_lease_needs_command" -f -a "release" -d 'Release a lease, or evict its holder'
complete -c lease -n "__fish_lease_needs_command" -f -a "status" -d 'Show who holds what, and until when'
complete -c lease -n "__fish_lease_needs_command" -f -a "history" -d 'Show what ran, where, when, and how it ended'
complete -c lease -n "__fish_lease_needs_command" -f -a "purge" -d 'Remove keys that nobody has used for a long time'
complete -c lease -n "__fish_lease_needs_command" -f -a "init" -d 'Create the lease table, or print the SQL for it'
complete -c lease -n "__fish_lease_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c lease -n "__fish_lease_using_subcommand run" -l ttl -d 'Let the lease expire this long after the claim or the last renewal (100ms to 30days)' -r
complete -c lease -n "__fish_lease_using_subcommand run" -l wait -d 'Wait for up to this long, or `forever`, if someone else holds the lease. Waiters are not served in order [default: do not wait]' -r
complete -c lease -n "__fish_lease_using_subcommand run" -s E -l conflict-exit-code -d 'Exit with this code if someone else holds the lease, the key is cooling or the run is not due; 0 if a skipped run is not a failure' -r
complete -c lease -n "__fish_lease_using_subcommand run" -l name -d 'Begin the holder\'s name with this; a random part follows [default: host name]' -r
complete -c lease -n "__fish_lease_using_subcommand run" -l hold-at-least -d 'Keep the key closed until this long after the claim, even if the job ends sooner (at most 30days)' -r
complete -c lease -n "__fish_lease_using_subcommand run" -l once-per -d 'Run only if the last success of this key is older than this (1s to 10years)' -r
complete -c lease -n "__fish_lease_using_subcommand run" -l heartbeat -d 'Renew the lease this often [default: ttl / 3, or less if --grace leaves less room]' -r
complete -c lease -n "__fish_lease_using_subcommand run" -l grace -d 'Wait this long between TERM and KILL when stopping the job [default: ttl / 6, at most 10s, or less if --heartbeat leaves less room]' -r
complete -c lease -n "__fish_lease_using_subcommand run" -l on-loss -d 'Choose what happens to the job if the lease is lost' -r -f -a "stop\t'Stop the job and exit 76'
continue\t'Report the loss; the job runs on without the lease'"
complete -c lease -n "__fish_lease_using_subcommand run" -l log-format -d 'Write the messages of lease to stderr in this format' -r -f -a "text\t'A line for people'
json\t'One JSON object on each line'"
complete -c lease -n "__fish_lease_using_subcommand run" -s d -l database-url -d 'Connect to this database: a libpq URI or key=value string [default: PGHOST, PGUSER, PGSERVICE, ..., as for psql]' -r
complete -c lease -n "__fish_lease_using_subcommand run" -l table -d 'Keep the leases in this table: schema.table, or only the name of a table in public' -r
complete -c lease -n "__fish_lease_using_subcommand run" -l db-timeout -d 'Give up a database operation after this long, connecting included (10ms to 1day)' -r
complete -c lease -n "__fish_lease_using_subcommand run" -l eager -d 'With --wait, keep one connection while waiting and look every 20 ms, so that the wait ends milliseconds after a release'
complete -c lease -n "__fish_lease_using_subcommand run" -s q -l quiet -d 'Print errors only; a skipped run then prints nothing'
complete -c lease -n "__fish_lease_using_subcommand run" -s v -l verbose -d 'Report each step on stderr'
complete -c lease -n "__fish_lease_using_subcommand run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c lease -n "__fish_lease_using_subcommand run" -s V -l version -d 'Print version'
complete -c lease -n "__fish_lease_using_subcommand claim" -l ttl -d 'Let the lease expire this long after the claim or the last renewal (100ms to 30days)' -r
complete -c lease -n "__fish_lease_using_subcommand claim" -l wait -d 'Wait for up to this long, or `forever`, if someone else holds the lease. Waiters are not served in order [default: do not wait]' -r
complete -c lease -n "__fish_lease_using_subcommand claim" -s E -l conflict-exit-code -d 'Exit with this code if someone else holds the lease, the key is cooling or the run is not due; 0 if a skipped run is not a failure' -r
complete -c lease -n "__fish_lease_using_subcommand claim" -l name -d 'Begin the holder\'s name with this; a random part follows [default: host name]' -r
complete -c lease -n "__fish_lease_using_subcommand claim" -l holder -d 'Claim as exactly this holder. If it has the lease already, the claim extends it, and the default --ttl never shortens it' -r
complete -c lease -n "__fish_lease_using_subcommand claim" -l format -d 'Print the answer in this format' -r -f -a "shell\t'`export` commands for a POSIX shell'
json\t'One JSON object'"
complete -c lease -n "__fish_lease_using_subcommand claim" -s d -l database-url -d 'Connect to this database: a libpq URI or key=value string [default: PGHOST, PGUSER, PGSERVICE, ..., as for psql]' -r
complete -c lease -n "__fish_lease_using_subcommand claim" -l table -d 'Keep the leases in this table: schema.table, or only the name of a table in public' -r
complete -c lease -n "__fish_lease_using_subcommand claim" -l db-timeout -d 'Give up a database operation after this long, connecting included (10ms to 1day)' -r
complete -c lease -n "__fish_lease_using_subcommand claim" -l eager -d 'With --wait, keep one connection while waiting and look every 20 ms, so that the wait ends milliseconds after a release'
complete -c lease -n "__fish_lease_using_subcommand claim" -s q -l quiet -d 'Print errors only; a skipped run then prints nothing'
complete -c lease -n "__fish_lease_using_subcommand claim" -s v -l verbose -d 'Report each step on stderr'
complete -c lease -n "__fish_lease_using_subcommand claim" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c lease -n "__fish_lease_using_subcommand claim" -s V -l version -d 'Print version'
complete -c lease -n "__fish_lease_using_subcommand renew" -l ttl -d 'Let the lease expire this long from now, even if it had more time left; the default never shortens it (100ms to 30days)' -r
complete -c lease -n "__fish_lease_using_subcommand renew" -l holder -d 'Renew the term of this holder [default: LEASE_HOLDER]' -r
complete -c lease -n "__fish_lease_using_subcommand renew" -l fence -d 'Renew the term with this fence [default: FENCE]' -r
complete -c lease -n "__fish_lease_using_subcommand renew" -l format -d 'Print the answer in this format' -r -f -a "shell\t'`export` commands for a POSIX shell'
json\t'One JSON object'"
complete -c lease -n "__fish_lease_using_subcommand renew" -s d -l database-url -d 'Connect to this database: a libpq URI or key=value string [default: PGHOST, PGUSER, PGSERVICE, ..., as for psql]' -r
complete -c lease -n "__fish_lease_using_subcommand renew" -l table -d 'Keep the leases in this table: schema.table, or only the name of a table in public' -r
complete -c lease -n "__fish_lease_using_subcommand renew" -l db-timeout -d 'Give up a database operation after this long, connecting included (10ms to 1day)' -r
complete -c lease -n "__fish_lease_using_subcommand renew" -s q -l quiet -d 'Print errors only; a skipped run then prints nothing'
complete -c lease -n "__fish_lease_using_subcommand renew" -s v -l verbose -d 'Report each step on stderr'
complete -c lease -n "__fish_lease_using_subcommand renew" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c lease -n "__fish_lease_using_subcommand renew" -s V -l version -d 'Print version'
complete -c lease -n "__fish_lease_using_subcommand release" -l hold-at-least -d 'Keep the key closed until this long after the claim (at most 30days)' -r
complete -c lease -n "__fish_lease_using_subcommand release" -l holder -d 'Release the term of this holder [default: LEASE_HOLDER]' -r
complete -c lease -n "__fish_lease_using_subcommand release" -l fence -d 'Release the term with this fence [default: FENCE; none with --force]' -r
complete -c lease -n "__fish_lease_using_subcommand release" -l job-code -d 'Record in the history that the script ended with this code; 0 means success' -r
complete -c lease -n "__fish_lease_using_subcommand release" -s d -l database-url -d 'Connect to this database: a libpq URI or key=value string [default: PGHOST, PGUSER, PGSERVICE, ..., as for psql]' -r
complete -c lease -n "__fish_lease_using_subcommand release" -l table -d 'Keep the leases in this table: schema.table, or only the name of a table in public' -r
complete -c lease -n "__fish_lease_using_subcommand release" -l db-timeout -d 'Give up a database operation after this long, connecting included (10ms to 1day)' -r
complete -c lease -n "__fish_lease_using_subcommand release" -l force -d 'Evict the current holder, whoever it is; with --fence, only if the fence is still this one'
complete -c lease -n "__fish_lease_using_subcommand release" -s q -l quiet -d 'Print errors only; a skipped run then prints nothing'
complete -c lease -n "__fish_lease_using_subcommand release" -s v -l verbose -d 'Report each step on stderr'
complete -c lease -n "__fish_lease_using_subcommand release" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c lease -n "__fish_lease_using_subcommand release" -s V -l version -d 'Print version'
complete -c lease -n "__fish_lease_using_subcommand status" -l watch -d 'Show the leases again and again at this interval, until q or Ctrl-C is pressed; an argument that is not a duration is taken as a KEY [default interval: 2s]' -r
complete -c lease -n "__fish_lease_using_subcommand status" -l format -d 'Print the leases in this format' -r -f -a "table\t'Columns with a heading'
json\t'A JSON array, one object for each key'
openmetrics\t'Gauges for each key, free ones too, for node_exporter\'s textfile collector'"
complete -c lease -n "__fish_lease_using_subcommand status" -s d -l database-url -d 'Connect to this database: a libpq URI or key=value string [default: PGHOST, PGUSER, PGSERVICE, ..., as for psql]' -r
complete -c lease -n "__fish_lease_using_subcommand status" -l table -d 'Keep the leases in this table: schema.table, or only the name of a table in public' -r
complete -c lease -n "__fish_lease_using_subcommand status" -l db-timeout -d 'Give up a database operation after this long, connecting included (10ms to 1day)' -r
complete -c lease -n "__fish_lease_using_subcommand status" -l all -d 'Show free keys too'
complete -c lease -n "__fish_lease_using_subcommand status" -l exit-code -d 'Exit 0 if every named key is held, and 1 otherwise; with -q, print nothing'
complete -c lease -n "__fish_lease_using_subcommand status" -s q -l quiet -d 'Print errors only; a skipped run then prints nothing'
complete -c lease -n "__fish_lease_using_subcommand status" -s v -l verbose -d 'Report each step on stderr'
complete -c lease -n "__fish_lease_using_subcommand status" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c lease -n "__fish_lease_using_subcommand status" -s V -l version -d 'Print version'
complete -c lease -n "__fish_lease_using_subcommand history" -l since -d 'Show the runs that began no longer ago than this [default: the last 20 runs]' -r
complete -c lease -n "__fish_lease_using_subcommand history" -l limit -d 'Show at most this many runs' -r
complete -c lease -n "__fish_lease_using_subcommand history" -l overdue -d 'Show the keys whose last success is older than this, and exit 1; if there are none, print nothing and exit 0' -r
complete -c lease -n "__fish_lease_using_subcommand history" -l format -d 'Print the runs in this format' -r -f -a "table\t'Columns with a heading, with times in the time zone of TZ'
json\t'A JSON array, one object for each run or key, with times in UTC'"
complete -c lease -n "__fish_lease_using_subcommand history" -s d -l database-url -d 'Connect to this database: a libpq URI or key=value string [default: PGHOST, PGUSER, PGSERVICE, ..., as for psql]' -r
complete -c lease -n "__fish_lease_using_subcommand history" -l table -d 'Keep the leases in this table: schema.table, or only the name of a table in public' -r
complete -c lease -n "__fish_lease_using_subcommand history" -l db-timeout -d 'Give up a database operation after this long, connecting included (10ms to 1day)' -r
complete -c lease -n "__fish_lease_using_subcommand history" -l failed -d 'Show only runs that failed, vanished, or lost their lease'
complete -c lease -n "__fish_lease_using_subcommand history" -l last -d 'Show the last run of each key, and when it last succeeded'
complete -c lease -n "__fish_lease_using_subcommand history" -l chart -d 'Draw a line for each key that shows when it ran, failed or did nothing, within --since [default: 24h]'
complete -c lease -n "__fish_lease_using_subcommand history" -s q -l quiet -d 'Print errors only; a skipped run then prints nothing'
complete -c lease -n "__fish_lease_using_subcommand history" -s v -l verbose -d 'Report each step on stderr'
complete -c lease -n "__fish_lease_using_subcommand history" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c lease -n "__fish_lease_using_subcommand history" -s V -l version -d 'Print version'
complete -c lease -n "__fish_lease_using_subcommand purge" -l older-than -d 'Remove only keys that nobody has used for this long (1ms to 100years)' -r
complete -c lease -n "__fish_lease_using_subcommand purge" -s d -l database-url -d 'Connect to this database: a libpq URI or key=value string [default: PGHOST, PGUSER, PGSERVICE, ..., as for psql]' -r
complete -c lease -n "__fish_lease_using_subcommand purge" -l table -d 'Keep the leases in this table: schema.table, or only the name of a table in public' -r
complete -c lease -n "__fish_lease_using_subcommand purge" -l db-timeout -d 'Give up a database operation after this long, connecting included (10ms to 1day)' -r
complete -c lease -n "__fish_lease_using_subcommand purge" -l dry-run -d 'List the keys that would be removed, and remove nothing'
complete -c lease -n "__fish_lease_using_subcommand purge" -s q -l quiet -d 'Print errors only; a skipped run then prints nothing'
complete -c lease -n "__fish_lease_using_subcommand purge" -s v -l verbose -d 'Report each step on stderr'
complete -c lease -n "__fish_lease_using_subcommand purge" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c lease -n "__fish_lease_using_subcommand purge" -s V -l version -d 'Print version'
complete -c lease -n "__fish_lease_using_subcommand init" -l keep-history -d 'Keep the history of each key for at least this long (1h to 100years, or forever) [default: no change, and 90days for a new table]' -r
complete -c lease -n "__fish_lease_using_subcommand init" -s d -l database-url -d 'Connect to this database: a libpq URI or key=value string [default: PGHOST, PGUSER, PGSERVICE, ..., as for psql]' -r
complete -c lease -n "__fish_lease_using_subcommand init" -l table -d 'Keep the leases in this table: schema.table, or only the name of a table in public' -r
complete -c lease -n "__fish_lease_using_subcommand init" -l db-timeout -d 'Give up a database operation after this long, connecting included (10ms to 1day)' -r
complete -c lease -n "__fish_lease_using_subcommand init" -l print -d 'Print the SQL instead of running it; this needs no database'
complete -c lease -n "__fish_lease_using_subcommand init" -l with-fencing -d 'Also create lease_check_fence and its table, in the schema of --table'
complete -c lease -n "__fish_lease_using_subcommand init" -l no-history -d 'Create no history of runs; an existing one stays'
complete -c lease -n "__fish_lease_using_subcommand init" -s q -l quiet -d 'Print errors only; a skipped run then prints nothing'
complete -c lease -n "__fish_lease_using_subcommand init" -s v -l verbose -d 'Report each step on stderr'
complete -c lease -n "__fish_lease_using_subcommand init" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c lease -n "__fish_lease_using_subcommand init" -s V -l version -d 'Print version'
complete -c lease -n "__fish_lease_using_subcommand help; and not __fish_seen_subcommand_from run claim renew release status history purge init help" -f -a "run" -d 'Run a job while holding a lease'
complete -c lease -n "__fish_lease_using_subcommand help; and not __fish_seen_subcommand_from run claim renew release status history purge init help" -f -a "claim" -d 'Claim a lease in a script'
complete -c lease -n "__fish_lease_using_subcommand help; and not __fish_seen_subcommand_from run claim renew release status history purge init help" -f -a "renew" -d 'Renew a lease that you hold'
complete -c lease -n "__fish_lease_using_subcommand help; and not __fish_seen_subcommand_from run claim renew release status history purge init help" -f -a "release" -d 'Release a lease, or evict its holder'
complete -c lease -n "__fish_lease_using_subcommand help; and not __fish_seen_subcommand_from run claim renew release status history purge init help" -f -a "status" -d 'Show who holds what, and until when'
complete -c lease -n "__fish_lease_using_subcommand help; and not __fish_seen_subcommand_from run claim renew release status history purge init help" -f -a "history" -d 'Show what ran, where, when, and how it ended'
complete -c lease -n "__fish_lease_using_subcommand help; and not __fish_seen_subcommand_from run claim renew release status history purge init help" -f -a "purge" -d 'Remove keys that nobody has used for a long time'
complete -c lease -n "__fish_lease_using_subcommand help; and not __fish_seen_subcommand_from run claim renew release status history purge init help" -f -a "init" -d 'Create the lease table, or print the SQL for it'
complete -c lease -n "__fish_lease_using_subcommand help; and not __fish_seen_subcommand_from run claim renew release status history purge init help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
