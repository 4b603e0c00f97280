"""The most dangerous lines: the defect that `make mutants` plants in each, and the test that catches it."""

from dataclasses import dataclass

UNIT = "tests/unit/"


@dataclass(frozen=True)
class Mutant:
    """One defect: `old`, which stands exactly once in `file`, is replaced by `new`."""

    name: str
    file: str
    old: str
    new: str
    #: The damage that users would see.
    harm: str
    #: The test that fails because of it.
    test: str

    @property
    def is_unit(self) -> bool:
        return self.test.startswith(UNIT)


MUTANTS: tuple[Mutant, ...] = (
    # Taking over.
    Mutant(
        name="results-that-were-about-to-come",
        file="src/headgate/statements/checkpoint.py",
        old='        return Reached(batch, offsets, int(known["batchWatermarkMs"]), later, known["conf"])',
        new=(
            '        told = json.loads(self._lines("commits", batch)[1])\n'
            '        return Reached(batch, offsets, int(told["nextBatchWatermarkMs"]), later, known["conf"])'
        ),
        harm="Windows that a statement was about to give when it was stopped are never given.",
        test="tests/integration/statements/test_life.py::test_windows_that_were_about_to_close_are_not_lost",
    ),
    Mutant(
        name="takes-over-what-is-under-way",
        file="src/headgate/statements/standing.py",
        old="        if unread and _has_records(access, topic, unread):",
        new="        if False:",
        harm="Rows that were under way between two steps are lost to the statement that takes over.",
        test=(
            "tests/integration/statements/test_stages.py::"
            "test_rows_under_way_between_steps_are_not_taken_over"
        ),
    ),
    # Change events as rows.
    Mutant(
        name="deletes-are-rows",
        file="src/headgate/statements/topics.py",
        old="            kept = kept.where(quote(HAS_ROW)).drop(HAS_ROW)",
        new="            kept = kept.drop(HAS_ROW)",
        harm="Of each delete and truncate in a database a row of NULLs is written.",
        test=(
            "tests/integration/statements/test_change_events.py::"
            "test_after_images_are_rows_and_events_without_one_are_counted"
        ),
    ),
    Mutant(
        name="another-key-is-its-own",
        file="src/headgate/sql/insert.py",
        old="        return rekeyed(found.selects, relation, wanted)",
        new="        return replace(relation, key=tuple(wanted))",
        harm="A row whose declared key changes stays under the old one for ever.",
        test=("tests/unit/sql/test_insert.py::test_a_table_by_another_key_than_its_sources_is_keyed_again"),
    ),
    # Where a table stands in its topic.
    Mutant(
        name="position-from-the-tag-alone",
        file="src/headgate/tables/position.py",
        old="    while snapshot is not None:\n        position = _position_of(snapshot)",
        new="    while snapshot is None:\n        position = _position_of(snapshot)",
        harm="After a rollback the records that were rolled back never come again.",
        test="tests/unit/tables/test_position.py::test_after_a_rollback_the_ancestor_is_read_and_not_the_newer_tag",
    ),
    Mutant(
        name="a-loss-that-is-accepted-and-kept",
        file="src/headgate/tables/materialize.py",
        old="                back = end.advanced_to(first)",
        new="                back = position.advanced_to(first)",
        harm="What one partition lost to retention stops the table again, though it was accepted.",
        test=(
            "tests/unit/tables/test_leaders.py::"
            "test_what_one_partition_lost_to_retention_and_another_to_a_leader_is_accepted_at_once"
        ),
    ),
    Mutant(
        name="one-table-holds-all-up",
        file="src/headgate/engine/loop.py",
        old="                self._after_failure(topic, self._tasks[topic], error, time.monotonic())\n\n",
        new="                raise\n\n",
        harm="A table that cannot be looked at stops every other table.",
        test="tests/unit/engine/test_loop.py::test_a_table_that_cannot_be_looked_at_holds_no_other_up",
    ),
    Mutant(
        name="one-statement-holds-all-up",
        file="src/headgate/engine/statements.py",
        old="                self._stumbled(task, error)",
        new="                raise",
        harm="A statement that cannot be looked at stops those whose names come after it.",
        test=(
            "tests/unit/engine/test_statement_loop.py::"
            "test_a_statement_that_cannot_be_looked_at_holds_no_other_up"
        ),
    ),
    Mutant(
        name="position-at-a-compaction",
        file="src/headgate/tables/position.py",
        old=(
            "        parent = snapshot.parentId()\n"
            "        snapshot = table.snapshot(parent) if parent is not None else None\n"
            "    tag = "
        ),
        new="        snapshot = None\n    tag = ",
        harm="A table that was compacted stops with an error, or starts over.",
        test="tests/unit/tables/test_position.py::test_the_newest_ancestor_with_a_position_is_read",
    ),
    Mutant(
        name="position-missing-is-a-fresh-start",
        file="src/headgate/tables/position.py",
        old="    if found is None and table.operations().current().lastSequenceNumber() > 0:",
        new="    if False:",
        harm=(
            "A table whose snapshots were expired by another tool reads its topic a second time: every "
            "row twice."
        ),
        test="tests/unit/tables/test_position.py::test_history_without_a_position_is_an_error_and_no_fresh_start",
    ),
    Mutant(
        name="topic-id-unchecked",
        file="src/headgate/tables/plan.py",
        old="    if position.topic_id != topic.id:",
        new="    if False:",
        harm=(
            "A topic that was deleted and created again is read from the old topic's offsets: records "
            "are lost."
        ),
        test="tests/unit/tables/test_plan.py::test_another_topic_of_the_same_name",
    ),
    Mutant(
        name="cluster-id-unchecked",
        file="src/headgate/tables/plan.py",
        old="    if position.cluster_id != cluster_id:",
        new="    if False:",
        harm="Another Kafka cluster is read from the offsets of the first: records are lost or doubled.",
        test="tests/unit/tables/test_plan.py::test_another_topic_of_the_same_name",
    ),
    Mutant(
        name="topic-unchecked-before-the-commit",
        file="src/headgate/tables/materialize.py",
        old="            self.check(now)\n            check_leaders",
        new="            check_leaders",
        harm=(
            "Records of a topic that was created again while a batch was read go into the old topic's table."
        ),
        test="tests/unit/tables/test_commit_failures.py::test_a_topic_that_was_created_again_while_it_was_read_is_not_committed",
    ),
    Mutant(
        name="retention-of-a-new-partition-unnoticed",
        file="src/headgate/tables/plan.py",
        old="        if first > position.offsets.get(partition, 0)\n",
        new="        if first > position.offsets.get(partition, first)\n",
        harm=(
            "Records that retention removed before a new partition was read are missing, and nobody is told."
        ),
        test="tests/unit/tables/test_plan.py::test_retention_in_a_partition_that_was_never_read_is_noticed",
    ),
    Mutant(
        name="retention-of-the-position-unnoticed",
        file="src/headgate/tables/plan.py",
        old="    if lost:\n",
        new="    if len(lost) > 1:\n",
        harm="Records that retention removed before they were read are missing, and nobody is told.",
        test="tests/unit/tables/test_plan.py::test_retention_that_overtook_names_the_ranges",
    ),
    Mutant(
        name="truncated-topic-unnoticed",
        file="src/headgate/tables/plan.py",
        old="    if backwards:\n",
        new="    if False:\n",
        harm=(
            "A topic that lost its newest records leaves rows in the table that are nowhere else, and "
            "offsets are skipped."
        ),
        test="tests/unit/tables/test_plan.py::test_ends_before_the_position_are_an_error",
    ),
    Mutant(
        name="new-partition-unread",
        file="src/headgate/tables/plan.py",
        old="    behind = {p: end - position.offsets.get(p, 0) for p, end in ends.items()}",
        new=(
            "    behind = {p: end - position.offsets[p] for p, end in ends.items() if p in position.offsets}"
        ),
        harm="Records of a partition that was added to the topic never reach the table.",
        test="tests/unit/tables/test_plan.py::test_a_new_partition_is_read_from_its_beginning",
    ),
    Mutant(
        name="end-of-open-transactions",
        file="src/headgate/kafka/offsets.py",
        old=(
            '                    "group.id": "headgate-offsets",\n'
            '                    "enable.auto.commit": False,\n'
            '                    "isolation.level": "read_committed",'
        ),
        new=(
            '                    "group.id": "headgate-offsets",\n'
            '                    "enable.auto.commit": False,\n'
            '                    "isolation.level": "read_uncommitted",'
        ),
        harm="The position passes records of an open transaction: when it commits, they are lost.",
        test="tests/integration/kafka/test_offsets.py::test_an_open_transaction_holds_the_end_back",
    ),
    Mutant(
        name="aborted-records-are-read",
        file="src/headgate/tables/lane.py",
        old='            "kafka.isolation.level": "read_committed",',
        new='            "kafka.isolation.level": "read_uncommitted",',
        harm="Records of aborted transactions become rows.",
        test="tests/integration/tables/test_materialize.py::test_aborted_and_open_transactions",
    ),
    # Who may commit to a table.
    Mutant(
        name="fencing-by-the-tag",
        file="src/headgate/catalog/fencing.py",
        old="    carrier = ancestor or _find(table, table.tagged)",
        new="    carrier = _find(table, table.tagged) or ancestor",
        harm="After a rollback the catalog refuses every batch, or takes one that skips records.",
        test="tests/unit/catalog/test_fencing.py::test_an_ancestors_word_goes_before_the_tags",
    ),
    Mutant(
        name="stale-batch-taken",
        file="src/headgate/catalog/fencing.py",
        old="    if not started or start == position:",
        new="    if not started or position is not None:",
        harm=(
            "An engine that was stopped and woken writes its batch beside the one that replaced it: "
            "rows twice."
        ),
        test="tests/unit/catalog/test_fencing.py::test_a_stale_batch_is_a_conflict_that_names_both_positions",
    ),
    Mutant(
        name="commit-unjudged",
        file="src/headgate/catalog/commit.py",
        old="        batches = judge(state, wanted, committed)",
        new="        batches = proposed_batches(wanted)",
        harm="The catalog takes any batch: two engines at once write every row twice.",
        test="tests/integration/catalog/test_fencing.py::test_a_stale_batch_is_refused_though_its_client_refreshed",
    ),
    Mutant(
        name="repeated-batch-refused",
        file="src/headgate/catalog/fencing.py",
        old="        if batch in committed:\n            raise _committed_before(batch)",
        new=(
            "        if batch in committed:\n"
            '            raise commit_failed(f"Batch {batch} was committed before.")'
        ),
        harm=(
            "After a lost answer the client is told 409 and deletes files that are the table's: it "
            "cannot be read any more."
        ),
        test="tests/unit/catalog/test_fencing.py::test_a_batch_of_before_is_unknown_whatever_else_is_wrong_with_it",
    ),
    Mutant(
        name="repeated-batch-of-a-registered-table-refused",
        file="src/headgate/catalog/fencing.py",
        old="        raise _committed_before(batch)\n    if position is None:",
        new="        pass\n    if position is None:",
        harm=(
            "On a table that was registered here a repeated batch is 409, and its client deletes the "
            "table's files."
        ),
        test="tests/unit/catalog/test_fencing.py::test_a_batch_in_the_history_of_a_registered_table_is_unknown_too",
    ),
    Mutant(
        name="batch-race-refused",
        file="src/headgate/catalog/ledger.py",
        old="        raise commit_unknown(\n            f\"Batch {', '.join(move.batches)} was committed",
        new="        raise already_exists(\n            f\"Batch {', '.join(move.batches)} was committed",
        harm=(
            "Of one batch sent to two servers the slower answer is 409, and its client deletes the "
            "table's files."
        ),
        test="tests/unit/catalog/test_ledger.py::test_a_batch_that_another_process_just_committed_is_unknown_and_moves_nothing",
    ),
    Mutant(
        name="head-unasserted",
        file="src/headgate/catalog/fencing.py",
        old="    if not proposal.asserts_main:",
        new="    if False:",
        harm="A commit that names no head joins a table that has moved on since it was prepared.",
        test="tests/unit/catalog/test_fencing.py::test_without_an_assertion_of_main_nothing_is_added",
    ),
    Mutant(
        name="foreign-rows-taken",
        file="src/headgate/catalog/fencing.py",
        old="        if OPERATION_KEY not in summary and snapshot.operation != REPLACE:",
        new="        if False:",
        harm="Another tool's rows end up in a topic's table.",
        test="tests/unit/catalog/test_fencing.py::test_rows_from_elsewhere_are_refused",
    ),
    Mutant(
        name="expiry-forgets-the-position",
        file="src/headgate/catalog/fencing.py",
        old="    if position_at(after, table.main) != position_at(table, table.main):",
        new="    if False:",
        harm="Another tool's expiry makes the table forget where it stands.",
        test="tests/unit/catalog/test_fencing.py::test_an_expiry_that_loses_the_position_is_refused",
    ),
    Mutant(
        name="pointer-swapped-blindly",
        file="src/headgate/catalog/ledger.py",
        old="        unmoved = _is_table(move.identifier) & (tables.c.metadata_location == move.old)",
        new="        unmoved = _is_table(move.identifier)",
        harm="Of two commits at once one is acknowledged and lost.",
        test="tests/unit/catalog/test_ledger.py::test_one_lost_race_moves_nothing",
    ),
    Mutant(
        name="metadata-removed-after-an-unknown-commit",
        file="src/headgate/catalog/commit.py",
        old="    except Unconfirmed:\n        raise  # the pointers may have moved: the files must stay\n",
        new="",
        harm="A database that does not confirm a commit leaves tables whose metadata is gone.",
        test="tests/integration/catalog/test_commits.py::test_files_stay_when_the_outcome_is_unknown",
    ),
    Mutant(
        name="head-unchecked-by-the-writer",
        file="src/headgate/tables/lake.py",
        old="        update.validateWith(self._still_at(head))\n",
        new="",
        harm=(
            "On a foreign catalog two engines write rows twice; a batch goes past a compaction that "
            "moved its rows."
        ),
        test="tests/integration/maintain/test_maintain.py::test_the_writer_goes_on_beside_a_compaction",
    ),
    Mutant(
        name="files-removed-after-an-unknown-commit",
        file="src/headgate/tables/materialize.py",
        old="        except (StaleBatch, CommitRefused):\n",
        new="        except HeadgateError:\n",
        harm="A commit that is applied after its answer was lost has no files: the table cannot be read.",
        test="tests/unit/tables/test_commit_failures.py::test_files_of_a_commit_without_an_answer_stay_though_it_is_not_seen_yet",
    ),
    Mutant(
        name="files-removed-of-a-committed-batch",
        file="src/headgate/tables/materialize.py",
        old="            if self._lake.find_batch(self._table, batch, self._head) is None:",
        new="            if True:",
        harm="A batch that lost against its own first copy takes that copy's files along.",
        test="tests/unit/tables/test_commit_failures.py::test_files_of_a_batch_that_lost_against_its_own_first_copy_stay",
    ),
    # Requests to the catalog that come twice.
    Mutant(
        name="outcome-unrecorded",
        file="src/headgate/catalog/ledger.py",
        old="            _record(connection, once, outcome)\n            for move in moves:",
        new="            for move in moves:",
        harm="A commit that a client repeats under its idempotency key is done again, or refused.",
        test="tests/unit/catalog/test_ledger.py::test_an_outcome_is_found_again_after_a_restart",
    ),
    Mutant(
        name="key-taken-twice",
        file="src/headgate/catalog/ledger.py",
        old="        raise KeyTaken(once.key) from error",
        new="        return",
        harm="Of two servers that get one request at once both carry it out.",
        test="tests/unit/catalog/test_ledger.py::test_a_key_is_taken_once",
    ),
    Mutant(
        name="key-of-another-request",
        file="src/headgate/catalog/ledger.py",
        old="        check_same_request(once, row.fingerprint)\n",
        new="",
        harm="A client that uses a key again is told that its change is done, and it is not.",
        test="tests/unit/catalog/test_ledger.py::test_a_key_of_another_request_is_refused",
    ),
    Mutant(
        name="repeated-request-acts-again",
        file="src/headgate/catalog/once.py",
        old=(
            "            if once is not None and (before := self._ledger.outcome(once)) is not None:\n"
            "                return replay(before)\n"
            "            try:"
        ),
        new="            try:",
        harm="A repeated change of a namespace is made twice.",
        test="tests/unit/catalog/test_once.py::test_a_repeated_request_is_answered_with_the_first_outcome",
    ),
    # Who may see and change what.
    Mutant(
        name="token-without-expiry",
        file="src/headgate/access/tokens.py",
        old="        if expires <= self._clock() and not or_expired:",
        new="        if False:",
        harm="A token that was stolen opens the catalog without end.",
        test="tests/unit/access/test_gate.py::test_a_token_expires",
    ),
    Mutant(
        name="token-of-another-issuer",
        file="src/headgate/access/tokens.py",
        old=(
            '        if found.claims.get("iss") != ISSUER or not isinstance(subject, str) or '
            "type(expires) is not int:"
        ),
        new="        if not isinstance(subject, str) or type(expires) is not int:",
        harm="A token that the same key signed for another purpose opens the catalog.",
        test="tests/unit/access/test_gate.py::test_a_right_signature_on_wrong_claims_opens_nothing",
    ),
    Mutant(
        name="token-signature-unchecked",
        file="src/headgate/access/tokens.py",
        old="            found = jwt.decode(token, self._key_of, algorithms=[ALGORITHM])",
        new=(
            "            import json\n"
            "\n"
            "            from joserfc import jws\n"
            "\n"
            "            found = jwt.Token({}, json.loads(jws.extract_compact(token.encode()).payload))"
        ),
        harm="Whoever writes a token of their own is an admin.",
        test="tests/unit/access/test_gate.py::test_forged_tokens_open_nothing",
    ),
    Mutant(
        name="revoked-credential-opens",
        file="src/headgate/access/credentials.py",
        old="            _credentials.c.client_id == client_id, _credentials.c.revoked_at.is_(None)\n",
        new="            _credentials.c.client_id == client_id\n",
        harm="A revoked credential and its tokens go on opening the catalog.",
        test="tests/unit/access/test_gate.py::test_a_revoked_client_is_out_at_once",
    ),
    Mutant(
        name="secret-uncompared",
        file="src/headgate/access/credentials.py",
        old="        return _credential(row) if right and row is not None else None",
        new="        return _credential(row) if row is not None else None",
        harm="A client id alone gets a token.",
        test="tests/unit/access/test_credentials.py::test_a_secret_opens_until_it_is_revoked",
    ),
    Mutant(
        name="local-key-at-the-public-door",
        file="src/headgate/access/gate.py",
        old="        if not visit.public:\n            for key",
        new="        if True:\n            for key",
        harm="The engine's key, which never expires, opens everything from outside.",
        test="tests/unit/access/test_gate.py::test_local_keys_open_nothing_at_the_public_door",
    ),
    Mutant(
        name="public-door-without-a-token",
        file="src/headgate/access/gate.py",
        old='        if visit.public:\n            raise NotAuthorized("A token',
        new='        if False:\n            raise NotAuthorized("A token',
        harm="From outside everybody is an admin without a token.",
        test="tests/unit/access/test_gate.py::test_no_token_is_nobody_where_one_is_asked_for",
    ),
    Mutant(
        name="link-at-the-public-door",
        file="src/headgate/access/gate.py",
        old="        if session.credential is None and visit.public:",
        new="        if False:",
        harm="A cookie that a link gave on the machine makes an admin of whoever shows it from outside.",
        test="tests/unit/access/test_sessions.py::test_gate_takes_a_session_at_the_loopback_door_only",
    ),
    Mutant(
        name="cookie-alone",
        file="src/headgate/access/gate.py",
        old="        if not visit.is_ours:\n",
        new="        if False:\n",
        harm="A page that gets a browser to send its cookie changes what its user may change.",
        test="tests/unit/access/test_sessions.py"
        "::test_session_is_not_enough_for_what_another_page_may_have_sent",
    ),
    Mutant(
        name="session-outlives-its-credential",
        file="src/headgate/access/gate.py",
        old="        found = self._credentials.find(session.credential)\n        if found is None:",
        new=(
            "        everybody = {one.client_id: one for one in self._credentials.list()}\n"
            "        found = everybody[session.credential]\n        if found is None:"
        ),
        harm="A browser stays signed in after its credential was revoked.",
        test="tests/unit/access/test_sessions.py"
        "::test_session_of_a_credential_is_its_principal_at_both_doors",
    ),
    Mutant(
        name="page-for-the-api",
        file="src/headgate/server/pages.py",
        old=' and not path.startswith("//") and path.split("/")[1] in SECTIONS',
        new="",
        harm="Whatever is read with GET is open to everybody.",
        test="tests/unit/server/test_pages.py::test_nothing_else_is_open",
    ),
    Mutant(
        name="query-token-is-exchanged",
        file="src/headgate/access/tokens.py",
        old="        if USE in claims:\n            raise not_a_token()\n",
        new="",
        harm="The token of a query, meant for reading alone, gets a client's own.",
        test="tests/unit/access/test_query_tokens.py"
        "::test_it_opens_nothing_at_the_public_door_and_is_not_exchanged",
    ),
    Mutant(
        name="query-token-writes",
        file="src/headgate/access/query_tokens.py",
        old="        return replace(credential.principal, reads_only=True)",
        new="        return credential.principal",
        harm="A query that got around the check of its SQL writes with its caller's rights.",
        test="tests/unit/access/test_query_tokens.py::test_it_says_who_asks_and_reads_alone",
    ),
    Mutant(
        name="view-of-a-script",
        file="src/headgate/query/checked.py",
        old='            if name == "ScriptTransformation":',
        new='            if name == "":',
        harm="A view of the lake runs a program as the user that Headgate runs as.",
        test="tests/integration/query/test_lake.py::test_a_view_of_the_lake_runs_no_script",
    ),
    Mutant(
        name="hidden-table-is-told",
        file="src/headgate/access/topics.py",
        old="        if role is None:\n            raise missing\n",
        new="",
        harm="Whoever may not see a table learns that it is there, or does what they like to it.",
        test="tests/unit/server/test_matrix.py::test_what_one_may_not_see_is_as_if_it_were_not",
    ),
    Mutant(
        name="route-asks-for-less",
        file="src/headgate/access/topics.py",
        old="        if role < needed:\n            raise self._refusal(needed, f\"'{topic}'\")",
        new="        if role < Role.READER:\n            raise self._refusal(needed, f\"'{topic}'\")",
        harm="A reader suspends, erases and purges what they see.",
        test="tests/unit/server/test_matrix.py::test_what_takes_more_than_a_role_has_is_refused",
    ),
    Mutant(
        name="route-without-a-rule",
        file="src/headgate/server/access.py",
        old="            if RULE not in extra:",
        new="            if False:",
        harm="A new route that says nothing of rights is open to everybody.",
        test="tests/unit/server/test_matrix.py::test_a_route_without_a_rule_is_refused",
    ),
    Mutant(
        name="lists-show-all",
        file="src/headgate/server/overview.py",
        old="        return self.rights is None or self.rights.sees(topic)",
        new="        return True",
        harm="The page, the metrics and the status name tables of others.",
        test="tests/unit/server/test_matrix.py::test_nothing_of_others_is_in_any_list",
    ),
    Mutant(
        name="refusals-leave-no-trace",
        file="src/headgate/server/trail.py",
        old="access is not None and access.is_telling and status >= REFUSED",
        new="False",
        harm="Who tries what they may not do is not in the audit trail.",
        test="tests/unit/server/test_trail.py::test_reading_leaves_nothing_and_what_is_refused_does",
    ),
    Mutant(
        name="managed-table-written-by-admins",
        file="src/headgate/catalog/rights.py",
        old="        if _role(caller, table) is not Role.ENGINE:",
        new="        if (_role(caller, table) or 0) < Role.WRITER:",
        harm="A writer's batch gets into a topic's table, position and all.",
        test="tests/unit/catalog/test_rights.py::test_a_managed_table_is_written_by_the_engine_alone",
    ),
    Mutant(
        name="reader-writes",
        file="src/headgate/catalog/rights.py",
        old='        if role < Role.WRITER:\n            raise forbidden(f"{_who(caller)} may read',
        new='        if role < Role.READER:\n            raise forbidden(f"{_who(caller)} may read',
        harm="Readers change and drop tables.",
        test="tests/unit/catalog/test_rights.py::test_a_table_is_changed_by_writers",
    ),
    Mutant(
        name="hidden-table-seen",
        file="src/headgate/catalog/rights.py",
        old="    return _role(caller, name) is not None",
        new="    return True",
        harm="Whoever has a credential reads every table.",
        test="tests/unit/catalog/test_rights.py::test_a_table_that_no_grant_covers_is_not_there",
    ),
    # Upsert tables.
    Mutant(
        name="first-record-of-a-key",
        file="src/headgate/tables/upsert.py",
        old="orderBy(*(column.desc() for column in order))",
        new="orderBy(*(column.asc() for column in order))",
        harm="Of several records of a key in one batch the oldest stays.",
        test="tests/integration/tables/test_upsert.py::test_batches_replace_and_delete_rows[deletion-vectors]",
    ),
    Mutant(
        name="deletion-vector-forgets",
        file="src/headgate/tables/row_deletes.py",
        old="            if one.deletes:\n",
        new="            if False:\n",
        harm="Data files get a second deletion vector: readers refuse the table, or show replaced rows.",
        test="tests/integration/tables/test_upsert.py::test_batches_replace_and_delete_rows[deletion-vectors]",
    ),
    Mutant(
        name="index-behind-is-trusted",
        file="src/headgate/tables/key_places.py",
        old="        if known == now:",
        new="        if known is not None:",
        harm="After a crash between a commit and its index, keys have two rows.",
        test="tests/integration/tables/test_upsert.py::test_an_index_that_is_behind_the_table_catches_up",
    ),
    Mutant(
        name="index-half-built-is-trusted",
        file="src/headgate/tables/key_index.py",
        old="        meta = self._meta() if reflects is not None else {}",
        new="        meta = self._meta()",
        harm="After a crash while the key index was built, keys have two rows.",
        test="tests/unit/tables/test_key_index.py::test_an_index_that_was_being_built_stands_for_no_snapshot",
    ),
    Mutant(
        name="index-mixes-up-files",
        file="src/headgate/tables/key_index.py",
        old="        self._next = max(self._paths, default=-1) + 1",
        new="        self._next = 0",
        harm="After a restart rows of other keys are deleted: an index entry names another file.",
        test="tests/unit/tables/test_key_index.py::test_files_keep_their_numbers_when_more_come_after_a_restart",
    ),
    Mutant(
        name="deleted-key-is-live",
        file="src/headgate/tables/key_index.py",
        old="        kind, number = _DELETED, 0",
        new="        kind, number = _LIVE, 0",
        harm="A batch after a tombstone deletes another key's row.",
        test="tests/unit/tables/test_key_index.py::test_a_deleted_key_is_known_and_has_no_row",
    ),
    Mutant(
        name="replayed-letter-overwrites",
        file="src/headgate/tables/orders.py",
        old="    return replay and (partition != place.partition or offset <= place.offset)",
        new="    return False",
        harm="A dead letter that is replayed replaces the newer row of its key.",
        test="tests/unit/tables/test_orders.py::test_a_replayed_record_is_late_unless_it_follows_in_the_same_partition",
    ),
    Mutant(
        name="older-change-event-overwrites",
        file="src/headgate/tables/orders.py",
        old="    return comparable(order, before) and order < before",
        new="    return comparable(order, before) and order > before",
        harm="A change event that comes again replaces the newer row of its key.",
        test="tests/unit/tables/test_orders.py::test_the_position_at_the_source_decides_before_the_offset",
    ),
    Mutant(
        name="deletion-forgotten",
        file="src/headgate/tables/orders.py",
        old="    return mark.partition == place.partition and mark.offset > place.offset",
        new="    return False",
        harm="A dead letter that is replayed brings back a row that was deleted after it.",
        test="tests/unit/tables/test_orders.py::test_a_deletion_is_remembered_unless_a_later_record_is_known",
    ),
    Mutant(
        name="mark-of-an-earlier-topic",
        file="src/headgate/tables/orders.py",
        old="        return eras[0] > eras[1]",
        new="        return True",
        harm="After a topic was created again and an engine died, keys that were once deleted have two rows.",
        test="tests/unit/tables/test_orders.py::test_a_record_of_an_earlier_era_is_older_whatever_its_offset",
    ),
    Mutant(
        name="log-of-a-restored-database",
        file="src/headgate/tables/generations.py",
        old="            counted = SnapshotCount(counted.count + 1, offset)",
        new="            counted = SnapshotCount(counted.count, offset)",
        harm="Changes of a database that was restored are taken for old ones, and are missing.",
        test="tests/unit/tables/test_orders.py::test_a_snapshot_begins_a_generation_only_after_stream_events",
    ),
    Mutant(
        name="rows-written-as-they-come",
        file="src/headgate/tables/upsert.py",
        old='.sortWithinPartitions(f"{CHANGE}.id")',
        new="",
        harm="After an executor was lost in a batch, the next batches delete rows of other keys.",
        test="tests/integration/tables/test_upsert.py::test_row_positions_hold_when_rows_are_computed_again_in_another_order",
    ),
    Mutant(
        name="unclean-election-unnoticed",
        file="src/headgate/tables/materialize.py",
        old="        check_replaced(self._replaced(view, judged), view.topic)\n",
        new="",
        harm="After an unclean election records are missing, and rows stay that the topic has lost.",
        test="tests/unit/tables/test_leaders.py::test_an_unclean_election_suspends_the_table_and_names_what_is_lost",
    ),
    Mutant(
        name="unclean-election-under-a-begun-batch-unnoticed",
        file="src/headgate/tables/materialize.py",
        old="        check_replaced(self._replaced(view, judged), view.topic)\n",
        new="        check_replaced(self._replaced(view, position), view.topic)\n",
        harm="Records at the offsets of dead letters that the topic has lost are taken for dead, unread.",
        test="tests/unit/tables/test_leaders.py::test_dead_letters_that_another_leader_has_written_over_suspend_the_table",
    ),
    # Dead letters.
    Mutant(
        name="dead-letters-unwritten",
        file="src/headgate/tables/materialize.py",
        old="        if self.spec.on_error is OnError.SKIP:",
        new="        if self.spec.on_error is not OnError.SUSPEND:",
        harm="Bad records are counted, and are neither rows nor dead letters: nobody can replay them.",
        test="tests/unit/tables/test_batch_order.py::test_dead_letters_are_written_before_the_batch_is_committed",
    ),
    Mutant(
        name="dead-letters-by-offset-alone",
        file="src/headgate/tables/dead_letters.py",
        old='["partition", "offset"], "left_anti"',
        new='["offset"], "left_anti"',
        harm="A retry loses good records that share an offset with a dead letter of another partition.",
        test="tests/integration/tables/test_dead_letters.py::test_a_retry_finds_what_is_dead_already[published]",
    ),
    Mutant(
        name="dead-letters-of-a-retry-forgotten",
        file="src/headgate/tables/materialize.py",
        old="        if self._dead is not None and (self._begun is not None or batch.start.reread):",
        new="        if self._dead is not None and batch.start.reread:",
        harm="A record is a dead letter and a row: the retry could read it.",
        test="tests/integration/tables/test_dead_letters.py::test_a_retry_finds_what_is_dead_already[published]",
    ),
    Mutant(
        name="dead-letters-of-a-replaced-engine",
        file="src/headgate/tables/dead_letters.py",
        old="            if snapshot.summary().get(ENGINE_KEY) != self._engine:",
        new="            if False:",
        harm="An engine that was stopped and woken adds dead letters for records that are rows.",
        test="tests/unit/tables/test_dead_letters.py::test_an_engine_whose_claim_was_replaced_writes_nothing",
    ),
    Mutant(
        name="dead-letters-of-a-batch-rolled-back",
        file="src/headgate/tables/dead_letters.py",
        old=(
            "    if any(now.offsets.get(p, 0) < offset for p, offset in begun.offsets.items() if p in same):"
        ),
        new="    if False:",
        harm="After a rollback a batch takes the end of one that never was, past its bounds.",
        test="tests/unit/tables/test_dead_letters.py::test_a_batch_that_the_table_is_not_in_has_no_rest",
    ),
    Mutant(
        name="dead-letters-of-the-topic-before",
        file="src/headgate/tables/dead_letters.py",
        old="    if (begun.cluster_id, begun.topic_id) != (now.cluster_id, now.topic_id):",
        new="    if False:",
        harm="A topic that was created again is read up to the old topic's offsets.",
        test="tests/unit/tables/test_dead_letters.py::test_a_batch_that_the_table_is_not_in_has_no_rest",
    ),
    Mutant(
        name="dead-letters-of-another-leader",
        file="src/headgate/tables/dead_letters.py",
        old="if begun.earlier == now.earlier or _leads_still(end, now, p)}",
        new="}",
        harm="Records that another leader wrote at offsets of dead letters are never read.",
        test=(
            "tests/unit/tables/test_dead_letters.py::"
            "test_dead_letters_of_offsets_that_another_leader_has_written_again_are_no_rest"
        ),
    ),
    # Columns.
    Mutant(
        name="rename-hits-the-new-field",
        file="src/headgate/tables/renames.py",
        old=(
            "                    applies = rename.below is None or schema_id is None or schema_id < "
            "rename.below"
        ),
        new="                    applies = True",
        harm="A new field under an old name is written into the renamed column.",
        test="tests/unit/tables/test_renames.py::test_an_alias_renames_for_older_schemas_only",
    ),
    Mutant(
        name="field-numbers-ignored",
        file="src/headgate/tables/renames.py",
        old="            if beside and other == number and old not in here:",
        new="            if beside and old not in here:",
        harm=(
            "A Protobuf field that is new is taken for one that was removed: its values go into that column."
        ),
        test="tests/unit/tables/test_renames.py::test_protobuf_fields_keep_their_numbers",
    ),
    Mutant(
        name="decimals-are-rounded",
        file="src/headgate/decode/project.py",
        old="            return found.scale == wanted.scale and found.precision <= wanted.precision",
        new="            return found.precision <= wanted.precision",
        harm="Decimals of another scale are rounded without a word.",
        test="tests/unit/decode/test_fits.py::test_widening_is_exact_or_not_at_all",
    ),
    Mutant(
        name="delta-columns-by-name",
        file="src/headgate/delta/schema.py",
        old="        if field_id not in held and place in by_place:",
        new="        if False:",
        harm="A column that takes an old name shows the old column's values to readers of Delta.",
        test="tests/unit/delta/test_schema.py::test_what_a_file_holds_against_what_is_asked_for",
    ),
    Mutant(
        name="delta-column-ids",
        file="src/headgate/delta/schema.py",
        old='{ID_KEY: one["id"], PHYSICAL_KEY: physical}',
        new="{ID_KEY: len(found) + 1, PHYSICAL_KEY: physical}",
        harm="Readers of Delta that find columns by id see other columns' values.",
        test="tests/unit/delta/test_schema.py::test_columns_are_mapped_by_id_and_named_as_in_the_files",
    ),
    # The Delta log.
    Mutant(
        name="delta-keeps-removed-files",
        file="src/headgate/tables/mirror.py",
        old="        found.removed = [unquote(path) for path in state.files if path not in listed]",
        new="        found.removed = []",
        harm="After a rollback readers of Delta still see the rows that were rolled back.",
        test="tests/unit/tables/test_mirror.py::test_files_that_are_gone_are_removed_and_new_ones_added",
    ),
    Mutant(
        name="delta-keeps-earlier-vectors",
        file="src/headgate/tables/mirror.py",
        old="                before is not None and deletes_of(before) != self._source.deletes_tag(deletes)",
        new="                before is not None and deletes_of(before) is None and deletes",
        harm="Readers of Delta see rows that were deleted since the file's first deletion vector.",
        test="tests/unit/tables/test_mirror.py::test_a_file_whose_deleted_rows_changed_gets_another_vector",
    ),
    Mutant(
        name="delta-keeps-deleted-rows",
        file="src/headgate/delta/actions.py",
        old='    if vector is not None:\n        said["deletionVector"] = vector\n    return {"add": said}',
        new='    return {"add": said}',
        harm="Readers of Delta see rows that were replaced or deleted.",
        test="tests/unit/delta/test_log.py::test_vectors_replace_each_other",
    ),
    Mutant(
        name="delta-vector-of-another-file",
        file="src/headgate/delta/vectors.py",
        old='            "offset": len(data),',
        new='            "offset": len(_VERSION),',
        harm="Readers of Delta lose rows: a file's deletion vector is that of another.",
        test="tests/unit/delta/test_vectors.py::test_each_is_found_where_the_log_says",
    ),
    Mutant(
        name="delta-vector-unchecked",
        file="src/headgate/delta/vectors.py",
        old=" or _LENGTH.pack(binascii.crc32(body)) != data[-4:]:",
        new=":",
        harm="A damaged deletion vector is copied into the Delta log.",
        test="tests/unit/delta/test_vectors.py::test_damage_is_noticed",
    ),
    Mutant(
        name="delta-version-made-twice",
        file="src/headgate/delta/files.py",
        old="            os.link(temporary, self._root / name)\n",
        new="            (self._root / name).write_bytes(temporary.read_bytes())\n",
        harm="Of two engines one replaces the other's version of the Delta log.",
        test="tests/unit/delta/test_log.py::test_a_version_is_made_once",
    ),
    # Maintenance.
    Mutant(
        name="young-orphans-removed",
        file="src/headgate/maintain/clean.py",
        old="    if seconds < 0 or (seconds < YOUNGEST_ORPHAN_SECONDS and not force):",
        new="    if seconds < 0:",
        harm="A clean-up removes files of a commit under way: the table cannot be read.",
        test="tests/unit/maintain/test_thresholds.py::test_young_files_are_cleaned_by_force_only",
    ),
    Mutant(
        name="tag-at-the-newest-position",
        file="src/headgate/maintain/expire.py",
        old="    for snapshot in ancestors[count - 1 :]:",
        new="    for snapshot in ancestors:",
        harm="Put back after an expiry, the table skips the records in between.",
        test="tests/unit/maintain/test_expire.py::test_the_tag_goes_to_the_position_of_the_oldest_snapshot_that_stays",
    ),
    Mutant(
        name="tag-without-a-position",
        file="src/headgate/maintain/expire.py",
        old="    if carrier is None or POSITION_KEY not in carrier.summary():",
        new="    if carrier is None:",
        harm="An expiry takes the last snapshot that has the position.",
        test="tests/unit/maintain/test_expire.py::test_nothing_is_expired_where_no_snapshot_has_a_position",
    ),
    Mutant(
        name="tag-unmoved-before-expiry",
        file="src/headgate/maintain/expire.py",
        old="        _move_tag(table, topic, carrier)\n        failpoint",
        new="        failpoint",
        harm="After an expiry that a crash cut short the table does not know where it stands, and stops.",
        test="tests/unit/maintain/test_expire.py::test_the_tag_is_moved_before_snapshots_expire",
    ),
    # Statements.
    Mutant(
        name="batch-without-a-marker",
        file="src/headgate/kafka/transactional.py",
        old="            self._mark(own)\n",
        new="",
        harm="A batch that is tried again after a crash is written twice.",
        test="tests/integration/kafka/test_transactional.py::test_a_batch_that_is_repeated_does_nothing",
    ),
    Mutant(
        name="batch-of-another-history-is-done",
        file="src/headgate/kafka/transactional.py",
        old="            if others or (own.batch == last.batch and own.entry != last.entry):\n",
        new="            if False:\n",
        harm="Rows of an engine that has not seen what another one wrote are left out.",
        test=(
            "tests/integration/kafka/test_transactional.py::"
            "test_a_batch_of_another_checkpoint_or_plan_is_not_taken_for_done"
        ),
    ),
    Mutant(
        name="markers-of-another-checkpoint-ignored",
        file="src/headgate/statements/recovery.py",
        old="    if any(marker.checkpoint not in (None, own) for marker in known):\n",
        new="    if False:\n",
        harm="A statement that has begun again at 0 leaves out each batch whose number was written before.",
        test="tests/unit/statements/test_recovery.py::test_what_cannot_be_gone_on_with_is_refused",
    ),
    Mutant(
        name="batch-of-another-history-goes-on",
        file="src/headgate/statements/recovery.py",
        old="        if last.checkpoint is not None and entry not in (None, last.entry or None):\n",
        new="        if False:\n",
        harm="Rows of a batch that has read other offsets than the one that was written are left out.",
        test="tests/unit/statements/test_recovery.py::test_what_cannot_be_gone_on_with_is_refused",
    ),
    Mutant(
        name="older-checkpoint-goes-on",
        file="src/headgate/statements/recovery.py",
        old=(
            "    if last.batch == reached + 1 and before is not None "
            "and without_conf(before) == last.before:\n"
        ),
        new="    if last.batch > reached and before is not None:\n",
        harm="A statement with an older copy of its checkpoint leaves out what it has not read.",
        test="tests/unit/statements/test_recovery.py::test_what_cannot_be_gone_on_with_is_refused",
    ),
    Mutant(
        name="marker-read-before-the-fence",
        file="src/headgate/kafka/transactional.py",
        old=(
            '            self._persist(self._producer.init_transactions, "begin to write")\n'
            "            self._last = read_marker(self._link, markers_topic, self._key)\n"
        ),
        new=(
            "            self._last = read_marker(self._link, markers_topic, self._key)\n"
            '            self._persist(self._producer.init_transactions, "begin to write")\n'
        ),
        harm="A batch that the older of two writers commits meanwhile is written twice.",
        test="tests/integration/kafka/test_transactional.py::test_an_older_writer_cannot_commit_while_the_marker_is_read",
    ),
    Mutant(
        name="tasks-beside-open-writers",
        file="src/headgate/statements/sink.py",
        old="            self._writers.forget()\n            written = write_frame(",
        new="            written = write_frame(",
        harm="A statement fails, and starts again, whenever a small batch follows a large one.",
        test=("tests/integration/statements/test_small_batches.py::test_small_and_large_batches_take_turns"),
    ),
    Mutant(
        name="rows-of-a-small-batch-in-other-tasks",
        file="src/headgate/kafka/frames.py",
        old="            rows.setdefault(own, []).append(row)",
        new="            rows.setdefault(0, []).append(row)",
        harm="A batch that is tried again in the other way writes rows twice, or leaves them out.",
        test=(
            "tests/integration/tables/test_transactional_frame.py::"
            "test_a_small_frame_has_the_rows_that_tasks_would_have"
        ),
    ),
    Mutant(
        name="marker-behind-an-open-transaction",
        file="src/headgate/kafka/markers.py",
        old="    _await_decided(link, place, end)\n    consumer",
        new="    consumer",
        harm=(
            "A marker that is hidden by another's open transaction is not found: its batch is written twice."
        ),
        test="tests/integration/kafka/test_transactional.py::test_a_marker_behind_anothers_open_transaction_is_read_when_that_is_decided",
    ),
    Mutant(
        name="watermark-of-the-fastest",
        file="src/headgate/statements/clock.py",
        old="        reached = min(known) if known and len(known) == len(times) else None",
        new="        reached = max(known) if known and len(known) == len(times) else None",
        harm="Rows of a partition that is behind are late, and dropped.",
        test="tests/unit/statements/test_clock.py::test_the_slowest_partition_says_how_far_it_is",
    ),
    Mutant(
        name="watermark-without-the-unseen",
        file="src/headgate/statements/clock.py",
        old="        reached = min(known) if known and len(known) == len(times) else None",
        new="        reached = min(known) if known else None",
        harm="Rows of a partition that nothing was read from yet are late, and dropped.",
        test="tests/unit/statements/test_clock.py::test_the_slowest_partition_says_how_far_it_is",
    ),
    Mutant(
        name="idle-partition-holds-all",
        file="src/headgate/statements/clock.py",
        old="        return until - state.heard_at < self.idle_seconds",
        new="        return True",
        harm="One partition without records holds every window open.",
        test="tests/unit/statements/test_clock.py::test_a_silent_partition_does_not_count",
    ),
    Mutant(
        name="backlog-is-idle",
        file="src/headgate/statements/clock.py",
        old="        if state.waits or state.waits is None:\n            return True\n",
        new="",
        harm="Rows of a partition that waits for its turn are late, and dropped.",
        test="tests/unit/statements/test_clock.py::test_a_backlog_that_was_told_long_ago_holds_event_time",
    ),
    Mutant(
        name="silence-while-a-batch-runs",
        file="src/headgate/statements/event_time.py",
        old='            if query.status["isTriggerActive"]:\n                return\n',
        new="",
        harm="A batch longer than the idle timeout throws the watermark to the fastest partition.",
        test="tests/unit/statements/test_event_time.py::test_no_look_counts_while_a_batch_runs",
    ),
    Mutant(
        name="silence-as-of-the-end-of-a-batch",
        file="src/headgate/statements/clock.py",
        old="        reached = self.watermark(self.calm_at)\n",
        new="        reached = self.watermark(now)\n",
        harm="A partition without rows in a long batch counts as silent, and its next rows are late.",
        test="tests/unit/statements/test_event_time.py::test_silence_is_asked_as_of_the_start_of_a_batch",
    ),
    Mutant(
        name="goes-on-in-another-topic",
        file="src/headgate/statements/query.py",
        old="            check_topic_ids(self._name, read, {topic.name: topic.id for topic in topics})",
        new="            pass",
        harm="A statement leaves out the first records of a topic that was created again while it ran.",
        test=(
            "tests/integration/statements/test_lost_checkpoints.py::"
            "test_a_topic_that_is_created_again_under_a_running_statement_stops_it"
        ),
    ),
    Mutant(
        name="goes-on-behind-records-of-another-leader",
        file="src/headgate/statements/leaders.py",
        old="        if lost:",
        new="        if False:",
        harm="After an unclean election a statement leaves out what the new leader has written.",
        test=(
            "tests/unit/statements/test_leaders.py::"
            "test_records_that_another_leader_has_written_over_stop_the_statement"
        ),
    ),
    Mutant(
        name="a-leader-is-known-before-it-writes-over",
        file="src/headgate/statements/leaders.py",
        old="        lost = gone | replaced_ranges(",
        new="        lost = replaced_ranges(",
        harm="After an unclean election a statement leaves out what the new leader writes later.",
        test=(
            "tests/unit/statements/test_leaders.py::"
            "test_records_that_are_gone_and_not_written_over_yet_stop_the_statement_too"
        ),
    ),
    Mutant(
        name="silence-is-the-end-of-a-topic",
        file="src/headgate/kafka/records.py",
        old="                if whole:",
        new="                if False:",
        harm="Rows between two steps are lost to the statement that takes over while Kafka does not answer.",
        test=(
            "tests/unit/kafka/test_records.py::"
            "test_who_must_know_that_nothing_is_left_is_told_when_nobody_says_so"
        ),
    ),
    Mutant(
        name="written-because-no-marker-says-so",
        file="src/headgate/statements/recovery.py",
        old="        if planned is not None and not checkpoint.is_done(planned):",
        new="        if False:",
        harm="A batch is written twice when the topic of markers was deleted in its middle.",
        test="tests/unit/statements/test_recovery.py::test_what_cannot_be_gone_on_with_is_refused",
    ),
    Mutant(
        name="silence-of-what-came-meanwhile",
        file="src/headgate/statements/event_time.py",
        old="                reached = self._clock.rest(looked_at)",
        new="                reached = self._clock.rest(time.monotonic())",
        harm="A record that came while a batch ran is late: its partition is idle before it is read.",
        test=(
            "tests/unit/statements/test_event_time.py::"
            "test_a_record_that_came_while_a_batch_ran_ends_a_silence"
        ),
    ),
    Mutant(
        name="watermark-goes-back",
        file="src/headgate/statements/clock.py",
        old="            self.reached = max(self.reached or 0, min(known))",
        new="            self.reached = min(known)",
        harm="Windows that were closed are opened and written again.",
        test="tests/unit/statements/test_clock.py::test_the_slowest_input_that_is_awake_counts",
    ),
    Mutant(
        name="pause-of-all-moves-event-time",
        file="src/headgate/statements/clock.py",
        old="        until = now if state.seen is None else min(now, spoken_at)",
        new="        until = now",
        harm="A backfill after a pause of the topic is late, and dropped.",
        test="tests/unit/statements/test_clock.py::test_a_pause_of_all_partitions_moves_nothing",
    ),
    Mutant(
        name="pause-counts-as-silence",
        file="src/headgate/statements/clock.py",
        old="        pause = now - self.spoken_at\n",
        new="        pause = 0.0\n",
        harm="After a pause of all inputs the one that is read first makes the records of the others late.",
        test="tests/unit/statements/test_clock.py::test_a_pause_of_all_partitions_moves_nothing",
    ),
    Mutant(
        name="closed-before-it-is-read",
        file="src/headgate/statements/closing.py",
        old="        if not step.has_read(self._ends.result()):\n            return False\n",
        new="",
        harm="Rows that were there when it was asked come behind event time, and are dropped.",
        test="tests/unit/statements/test_closing.py::test_a_request_waits_for_what_was_there_and_not_for_what_comes_after_it",
    ),
    Mutant(
        name="flush-in-the-middle-of-a-burst",
        file="src/headgate/statements/closing.py",
        old="            if silent is not None and silent < self._silence:\n                return False\n",
        new="",
        harm="Rows of a burst that has begun since are late, and dropped.",
        test="tests/unit/statements/test_closing.py::test_a_record_that_comes_meanwhile_has_its_own_silence",
    ),
    Mutant(
        name="due-rows-wait-for-a-record-after-a-restart",
        file="src/headgate/statements/query.py",
        old="                checkpoint.plan_due()\n",
        new="                pass\n",
        harm="Rows that were due when the engine died come out with the next record, or never.",
        test=(
            "tests/integration/statements/test_watermarks.py::"
            "test_what_was_due_when_a_query_ended_comes_out_of_the_next_without_a_record"
        ),
    ),
    Mutant(
        name="restart-forgets-what-was-seen",
        file="src/headgate/statements/event_time.py",
        old="            for scan, times in known.items():\n",
        new="            for scan, times in {}.items():\n",
        harm="What was read before a restart cannot be closed after it.",
        test="tests/unit/statements/test_event_time.py::test_another_run_takes_up_what_was_seen",
    ),
    Mutant(
        name="clock-of-the-producers",
        file="src/headgate/statements/step.py",
        old="            if not self._is_dated_by_broker(topic):\n",
        new="            if False:\n",
        harm="A producer's backfill after a pause is late, and dropped.",
        test=(
            "tests/integration/statements/test_watermarks.py::"
            "test_the_wall_clock_closes_a_topic_that_the_broker_dates_and_no_other"
        ),
    ),
    Mutant(
        name="clock-past-open-transactions",
        file="src/headgate/statements/step.py",
        old="            elif self.has_read({topic: self._topics.last_ends(self._topics.describe(topic))}):",
        new="            elif self.has_read(self.ends()):",
        harm="Records of a transaction that was open when the clock was looked at are late, and dropped.",
        test=(
            "tests/integration/statements/test_watermarks.py::"
            "test_the_wall_clock_closes_a_topic_that_the_broker_dates_and_no_other"
        ),
    ),
    Mutant(
        name="mistaken-time-moves-event-time",
        file="src/headgate/statements/scan.py",
        old="        millis = f.when(~is_far, f.unix_millis(moment))",
        new="        millis = f.unix_millis(moment)",
        harm="One record with a wrong date makes all others late.",
        test="tests/integration/statements/test_watermarks.py::test_a_time_far_ahead_moves_nothing_and_is_counted",
    ),
    Mutant(
        name="late-groups-for-rows",
        file="src/headgate/statements/query.py",
        old="        self._late_before.set(self._event_time.batch_ran(self._query, number))\n",
        new="        self._event_time.batch_ran(self._query, number)\n",
        harm="Thousands of rows are dropped, and a handful is counted.",
        test=(
            "tests/integration/statements/test_watermarks.py::"
            "test_late_rows_are_counted_as_rows_though_they_are_gathered_before"
        ),
    ),
    Mutant(
        name="window-closed-before-its-end",
        file="src/headgate/sql/operators.py",
        old="        return latest - (latest - self.start_ms) % step + self.size_ms",
        new="        return latest",
        harm="A finished statement keeps its last windows to itself.",
        test="tests/unit/sql/test_plans.py::test_a_plan_knows_when_all_that_it_makes_of_a_row_has_come_out",
    ),
    Mutant(
        name="late-rows-uncounted",
        file="src/headgate/statements/progress.py",
        old="    return rows + others\n",
        new="    return rows\n",
        harm="Late rows are dropped and nobody is told.",
        test="tests/unit/statements/test_progress.py::test_totals_go_on",
    ),
    # What ends, and what does not wait.
    Mutant(
        name="result-decided-twice",
        file="src/headgate/store/statements.py",
        old='            settled = {name: dict(value), **row["settled"]}\n',
        new='            settled = {**row["settled"], name: dict(value)}\n',
        harm="Two engines write parts of two results: rows are there twice, and others never.",
        test="tests/unit/store/test_statements.py::test_what_is_decided_once_stays",
    ),
    Mutant(
        name="clock-in-what-ends",
        file="src/headgate/sql/insert.py",
        old="    if options.bounded:\n        _refuse_chance(made)\n",
        new="",
        harm="A statement that ends has another result after a crash than before it.",
        test="tests/unit/sql/test_insert.py::test_what_ends_has_no_clock",
    ),
    Mutant(
        name="first-at-once-of-any-key",
        file="src/headgate/sql/dedup.py",
        old="    return scans[0] if record and columns.issuperset(record) else None\n",
        new="    return scans[0]\n",
        harm="Of rows in several partitions the one that happens to be read first comes out.",
        test=(
            "tests/unit/sql/test_plans.py"
            "::test_the_first_of_a_partition_comes_at_once_where_all_rows_of_a_key_are_in_one"
        ),
    ),
    # Who is at the other end.
    Mutant(
        name="closed-ends-are-roots",
        file="src/headgate/access/peers.py",
        old="    return Owner(uid, inode) if same and inode and state != _LISTENING else None",
        new="    return Owner(uid, inode) if same and state != _LISTENING else None",
        harm="A service of root takes the last request of everybody who closes their end for its own user's.",
        test="tests/unit/access/test_peers.py::test_closed_end_is_nobodys_though_the_system_calls_it_roots",
    ),
    Mutant(
        name="addresses-used-again",
        file="src/headgate/access/peers.py",
        old="        if owner is None or ours is None or ours.inode != inode or owner.uid == unmapped_uid():",
        new="        if owner is None or ours is None or owner.uid == unmapped_uid():",
        harm="A request is taken for that of whoever has its sender's addresses after them.",
        test=(
            "tests/unit/access/test_peers.py::"
            "test_later_connection_with_the_same_addresses_is_not_taken_for_this_one"
        ),
    ),
    Mutant(
        name="every-local-user",
        file="src/headgate/access/gate.py",
        old="        if visit.uid != os.geteuid():",
        new="        if visit.uid != visit.uid:",
        harm="Every user of the machine is an admin.",
        test=(
            "tests/unit/access/test_gate.py::test_own_user_needs_nothing_on_loopback_and_others_a_credential"
        ),
    ),
    # Requests of whoever is not known, or not honest.
    Mutant(
        name="names-cut-short",
        file="src/headgate/kafka/topics.py",
        old='    return "\\0" not in text and not any(',
        new="    return not any(",
        harm="Rights are asked for one name, and Kafka for what is before a zero in it.",
        test="tests/unit/kafka/test_topics.py::test_name_that_would_be_cut_short_is_nobodys",
    ),
    Mutant(
        name="half-characters",
        file="src/headgate/server/limits.py",
        old="    return any(escape.group(1) for escape in _ESCAPE.finditer(body))",
        new="    return False",
        harm="A credential is made that no list can show, and so no list is shown.",
        test="tests/unit/server/test_limits.py::test_half_of_a_character_is_refused",
    ),
    Mutant(
        name="forwarded-addresses",
        file="src/headgate/server/public.py",
        old="        proxy_headers=False,",
        new="        proxy_headers=True,",
        harm="Whoever is on the machine says where they come from: failures and the audit trail go by it.",
        test="tests/unit/server/test_doors.py::test_addresses_that_requests_name_themselves_are_not_believed",
    ),
    Mutant(
        name="frames-of-others",
        file="src/headgate/server/origin.py",
        old='headers.get("sec-fetch-dest")) != ("navigate", "document")',
        new='"document") != ("navigate", "document")',
        harm="A page of others shows ours in a frame.",
        test=(
            "tests/unit/server/test_doors.py::"
            "test_what_a_page_of_others_loads_without_naming_itself_is_refused"
        ),
    ),
    Mutant(
        name="other-localhost",
        file="src/headgate/embedded/ports.py",
        old="        probe.bind((IPV6_LOOPBACK, port))",
        new="        probe.bind((IPV6_LOOPBACK, 0))",
        harm="Another user listens at ::1, and is shown the tokens of clients of localhost.",
        test="tests/unit/embedded/test_ports.py::test_no_other_user_sits_at_localhosts_other_address",
    ),
    Mutant(
        name="long-bodies-of-strangers",
        file="src/headgate/server/doors.py",
        old="    return path.startswith(CATALOG) and path != TOKENS",
        new="    return False",
        harm="Whoever reaches the public door fills the server's memory with bodies.",
        test="tests/unit/server/test_limits.py::test_long_body_of_a_stranger_is_not_read",
    ),
    Mutant(
        name="another-machines-broker",
        file="src/headgate/cli/access.py",
        old="    _check_reachable(address, data)",
        new="    pass",
        harm="datagen for a Headgate elsewhere writes into whatever listens on this machine.",
        test=("tests/unit/cli/test_access.py::test_broker_of_another_machine_is_not_looked_for_on_this_one"),
    ),
    # Back to an earlier snapshot.
    Mutant(
        name="letters-twice",
        file="src/headgate/tables/materialize.py",
        old="        if self._dead is not None and (self._begun is not None or batch.start.reread):",
        new="        if self._dead is not None and self._begun is not None:",
        harm="Records that a rolled back table reads again are dead letters a second time.",
        test=(
            "tests/integration/maintain/test_rollback.py::"
            "test_records_are_read_again_and_letters_are_dead_again"
        ),
    ),
    Mutant(
        name="rolled-back-on-what-others-made",
        file="src/headgate/tables/rollback.py",
        old="        if not plan.head.equals(base.currentSnapshot()):",
        new="        if False:",
        harm="What another writer has added since the plan is undone, and nobody is told.",
        test=(
            "tests/integration/maintain/test_rollback.py::"
            "test_a_commit_between_plan_and_rollback_is_not_undone_unseen"
        ),
    ),
    Mutant(
        name="forgets-what-was-read",
        file="src/headgate/model.py",
        old="        ahead = {p: end for p, end in self.reread.items() if end > now.get(p, 0)}",
        new="        ahead: dict[int, int] = {}",
        harm="After one batch of a rolled back table, letters of the records behind it come a second time.",
        test=(
            "tests/unit/tables/test_rollback.py::"
            "test_what_is_read_again_is_remembered_until_the_position_has_passed_it"
        ),
    ),
    Mutant(
        name="rolled-back-to-another-branch",
        file="src/headgate/catalog/fencing.py",
        old="    while ancestor is not None and ancestor.id != snapshot.parent_id:",
        new="    while ancestor is not None and ancestor.id == -1:",
        harm="A table takes the rows of a snapshot that was never in its history.",
        test=(
            "tests/unit/catalog/test_fencing.py::"
            "test_a_rollback_goes_back_in_the_history_of_what_it_asserts_only"
        ),
    ),
)
