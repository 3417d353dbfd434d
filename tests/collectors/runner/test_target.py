"""Launches, restarts, gaps and resuming, against a real HTTP server and a sink in memory."""

from __future__ import annotations

import msgspec
from tests.collectors.fetch.servers import always, hang, response
from tests.collectors.info.bodies import restarted
from tests.collectors.runner.engine import Engine, bench

from specscope_collectors.alternation import HELD_SCRAPES
from specscope_collectors.observations import Event, HealthState, Increment, Level, SourceHealth

NOT_FOUND = always(response(b"", "404 Not Found"))
TOKENS, CALLS = "tokens.generated", "spec.verify_calls"
DOUBTED = 1 + HELD_SCRAPES
"""Scrapes until a restart that no failed scrape announced is believed."""


def test_first_scrape_is_a_baseline_with_a_launch_and_later_ones_are_growth() -> None:
    with bench() as b:
        b.scrape()
        assert b.sink.events() == ["launch"]
        assert b.sink.increments() == {}
        assert b.sink.levels()["spec.accept_length"] == 2.5
        b.engine.serve(tokens=100, verify_calls=40)
        b.scrape()
        grown = b.sink.increments()
        assert (grown[TOKENS].value, grown[CALLS].value, grown[TOKENS].span_ms) == (100, 40, 5000)
        [launch] = b.sink.launches()
        assert {batch.launch_key for batch in b.sink.batches} == {launch.key}
        assert [batch.sequence for batch in b.sink.batches] == [1, 2]
        assert launch.reason == "first seen"


def test_health_of_the_scrape_is_data() -> None:
    with bench() as b:
        b.scrape()
        levels = [each for each in b.sink.all(Level) if each.metric.startswith("scrape.")]
        by_source = {(each.metric, each.labels["source"]): each.value for each in levels}
        assert by_source["scrape.up", "sglang_metrics"] == 1
        assert by_source["scrape.up", "sglang_info"] == 1
        assert by_source["scrape.body", "sglang_metrics"] == len(b.engine.metrics())
        assert by_source["scrape.series", "sglang_metrics"] == 6
        assert by_source["scrape.duration", "sglang_metrics"] > 0


def test_watching_does_not_disturb() -> None:
    with bench() as b:
        b.scrape(30)
        paths = b.paths()
        assert paths.count("/metrics") == 30
        assert paths.count("/server_info") == 1
        assert set(paths) == {"/metrics", "/server_info", "/model_info", "/v1/loads"}
        assert paths.count("/model_info") == 1
        assert paths.count("/v1/loads") == 1  # 404: not asked again
        b.scrape(31)
        assert b.paths().count("/server_info") == 2  # after 300 s
        assert len(b.sink.launches()) == 1


def test_a_failed_scrape_is_a_gap_and_the_next_one_carries_the_growth() -> None:
    with bench() as b:
        b.scrape()
        b.engine.break_down()
        b.engine.serve(tokens=70)
        b.scrape(2)
        assert b.sink.increments() == {}
        assert "spec.accept_length" not in b.sink.levels()
        assert b.sink.levels()["scrape.up"] == 0
        assert HealthState.OK not in b.sink.states()[1:]
        b.engine.recover()
        b.scrape()
        assert b.sink.increments()[TOKENS].value == 70
        assert b.sink.increments()[TOKENS].span_ms == 15_000
        assert len(b.sink.launches()) == 1


def test_a_restart_seen_by_counters_that_all_fell() -> None:
    with bench() as b:
        b.scrape()
        b.engine.serve(tokens=50)
        b.scrape()
        b.engine.restart(tokens=30, verify_calls=12)
        b.scrape(DOUBTED)
        first, second = b.sink.launches()
        assert first.key != second.key
        assert b.sink.events() == ["launch", "restart"]
        assert second.reason == "restarted"
        assert b.sink.total(TOKENS, first.key) == 50
        assert b.sink.total(TOKENS, second.key) == 30
        assert b.sink.total(CALLS, second.key) == 12
        assert min(each.value for each in b.sink.all(Increment)) >= 0


def test_a_restart_hidden_in_a_gap_is_seen_although_counters_grew_past_the_old_values() -> None:
    with bench() as b:
        b.scrape()
        b.engine.break_down()
        b.scrape()
        b.engine.recover()
        b.engine.restart(tokens=5000, verify_calls=2000)
        b.scrape()
        first, second = b.sink.launches()
        assert b.sink.total(TOKENS, second.key) == 5000
        assert b.sink.total(TOKENS, first.key) == 0
        b.engine.serve(tokens=7)
        b.scrape()
        assert b.sink.total(TOKENS) == 5007


def test_what_a_restarted_engine_counted_is_not_spread_over_the_time_it_was_away() -> None:
    with bench() as b:
        b.scrape()
        b.engine.overrides["*"] = always(response(b"starting", "503 Service Unavailable"))
        b.scrape(3)
        b.engine.recover()
        b.engine.restart(tokens=30, verify_calls=12)
        b.scrape()
        assert b.sink.increments()[TOKENS].value == 30
        assert b.sink.increments()[TOKENS].span_ms == 5_000


def test_a_restart_with_another_configuration_tells_what_changed() -> None:
    with bench() as b:
        b.scrape()
        b.engine.restart()
        b.engine.info |= {"speculative_num_steps": 2, "speculative_num_draft_tokens": 3}
        b.scrape(DOUBTED)
        assert b.sink.launches()[1].reason == "restarted with another configuration"
        assert b.sink.launches()[1].speculative.num_steps == 2
        event: Event = b.sink.all(Event)[-1]
        assert event.detail["changes"]["speculative_num_steps"] == [3, 2]
        assert "random_seed" not in event.detail["changes"]
        assert "speculative_num_steps 3 → 2" in event.message


def test_a_configuration_changed_in_the_running_process_is_noticed_at_the_info_interval() -> None:
    with bench(info_interval_seconds=20) as b:
        b.scrape()
        b.engine.info["internal_states"][0]["speculative_accept_threshold_single"] = 0.9
        b.engine.serve(tokens=40)
        b.scrape(4)
        assert b.sink.events() == ["launch", "config_change"]
        assert b.sink.total(TOKENS) == 40  # nothing lost, nothing twice


def test_counters_that_fall_in_one_certain_process_are_no_restart() -> None:
    with bench() as b:
        b.scrape()
        b.engine.tokens, b.engine.verify_calls, b.engine.requests = 5, 2, 1
        b.scrape(DOUBTED)
        assert len(b.sink.launches()) == 1
        assert b.sink.increments()[TOKENS].value == 5


def test_a_fixed_seed_without_start_up_times_still_gives_two_launches() -> None:
    engine = Engine()
    for holder in (engine.info, engine.info["internal_states"][0]):
        del holder["startup_time"]
    with bench(engine) as b:
        b.scrape()
        engine.tokens, engine.verify_calls, engine.requests = 3, 1, 1
        b.scrape(DOUBTED)
        first, second = b.sink.launches()
        assert first.key != second.key
        b.scrape(3)
        assert len(b.sink.launches()) == 2
        assert b.sink.batches[-1].launch_key == second.key


def test_without_server_info_the_metrics_alone_make_a_launch() -> None:
    engine = Engine(overrides={"/server_info": always(response(b"", "401 Unauthorized"))})
    with bench(engine) as b:
        b.scrape()
        [launch] = b.sink.launches()
        assert launch.version_source == "metric_names"
        assert launch.engine_version == "0.5.15"
        assert launch.served_model_name == "models/tiny-target"
        assert "SPECSCOPE_ENGINE_API_KEY" in b.sink.health("sglang_info").remedy
        engine.serve(tokens=10)
        b.scrape(5)
        assert b.sink.total(TOKENS) == 10
        assert len(b.sink.launches()) == 1
        assert b.paths().count("/server_info") == 1
        engine.restart(tokens=4, verify_calls=1)
        b.scrape(DOUBTED)
        assert b.sink.events() == ["launch", "restart"]
        assert b.sink.total(TOKENS, b.sink.launches()[1].key) == 4
        engine.overrides.clear()
        b.scrape(70)
        assert b.sink.launches()[-1].version_source == "server_info"
        assert b.sink.launches()[-1].reason == "configuration became readable"
        assert b.sink.total(TOKENS) == 14


def test_values_wait_for_a_launch_while_the_engine_does_not_say_what_it_is_and_nothing_is_lost() -> None:
    engine = Engine(overrides={"/server_info": always(response(b"", "503 Service Unavailable"))})
    with bench(engine) as b:
        b.scrape()
        engine.serve(tokens=10)
        b.scrape()
        assert b.sink.launches() == []
        assert {batch.launch_key for batch in b.sink.batches} == {None}
        kinds = {type(each).__name__ for batch in b.sink.batches for each in batch.observations}
        assert kinds == {"SourceHealth", "Level"}
        assert all(metric.startswith("scrape.") for metric in b.sink.levels())
        engine.overrides.clear()
        b.scrape()
        assert b.sink.launches()[0].version_source == "server_info"
        assert b.sink.total(TOKENS) == 10


def test_a_server_info_that_never_answers_does_not_block_for_ever() -> None:
    engine = Engine(overrides={"/server_info": hang})
    with bench(engine) as b:
        b.give_up_info_after(0.1)
        b.scrape(5)
        assert b.sink.launches()[0].version_source == "metric_names"
        assert b.sink.health("sglang_info").state is HealthState.TIMEOUT


def test_the_old_path_is_asked_only_where_the_new_one_does_not_exist() -> None:
    with bench() as b:
        b.scrape()
        assert "/get_server_info" not in b.paths()
    engine = Engine()
    with bench(engine) as b:
        engine.overrides["/server_info"] = NOT_FOUND
        engine.overrides["/get_server_info"] = engine._normal("/server_info")
        b.scrape()
        assert b.sink.launches()[0].engine_version == "0.5.23"


def test_metrics_off_still_gives_launch_and_load() -> None:
    loads = (
        b'{"timestamp":"2026-11-29T21:06:55+00:00","version":"0.5.23","loads":[{"dp_rank":0,"num_running_reqs":3,'
        b'"gen_throughput":0.0,"speculative":{"accept_length":2.25,"accept_rate":0.0}}]}'
    )
    engine = Engine(overrides={"/metrics": NOT_FOUND, "/v1/loads": always(response(loads))})
    with bench(engine) as b:
        b.scrape(4)
        health = b.sink.health()
        assert health.state is HealthState.DISABLED
        assert health.remedy == "start SGLang with --enable-metrics"
        assert len(b.sink.launches()) == 1
        assert b.paths().count("/server_info") == 1
        levels = {key: value for batch in (1, 2, 3) for key, value in b.sink.levels(batch).items()}
        assert levels["requests.running"] == 3
        assert levels["spec.lifetime_accept_length"] == 2.25
        assert "throughput.generated" not in levels


def test_with_metrics_on_loads_add_only_what_is_not_there() -> None:
    loads = (
        b'{"timestamp":"2026-11-29T21:06:55+00:00","version":"0.5.23","loads":[{"dp_rank":0,"num_running_reqs":3,'
        b'"kv_cache":1,"token_usage":0.5,"max_running_requests":48,"speculative":{"accept_length":2.25}}]}'
    )
    with bench(Engine(overrides={"/v1/loads": always(response(loads))})) as b:
        b.scrape(2)
        levels = b.sink.levels()
        assert levels["spec.lifetime_accept_length"] == 2.25
        assert levels["engine.max_running_requests"] == 48
        assert levels["requests.running"] == 2
        assert "kv.usage" not in levels


def test_a_store_that_is_down_loses_no_growth_and_a_restart_meanwhile_is_noticed() -> None:
    with bench() as b:
        b.scrape()
        b.sink.is_down = True
        b.engine.serve(tokens=20)
        b.scrape()
        b.engine.serve(tokens=22)
        b.scrape(2)
        b.sink.is_down = False
        b.scrape()
        grown = b.sink.increments()[TOKENS]
        assert (grown.value, grown.span_ms) == (42, 20_000)
        assert [batch.sequence for batch in b.sink.batches] == [1, 2]
        b.sink.is_down = True
        b.scrape()
        b.engine.restart(tokens=9000, verify_calls=9000)
        b.scrape(3)
        b.sink.is_down = False
        b.scrape()
        assert b.sink.events() == ["launch", "restart"]
        assert b.sink.total(TOKENS) == 42 + 9000


def test_a_restart_noticed_in_a_scrape_that_could_not_be_stored_is_not_forgotten() -> None:
    with bench() as b:
        b.scrape()
        b.sink.is_full = True
        b.engine.restart(tokens=30, verify_calls=12)
        b.scrape()
        b.sink.is_full = False
        for _ in range(20):
            b.engine.serve(tokens=500, verify_calls=200)  # grows past the values of the process before
        b.scrape()
        assert b.sink.events() == ["launch", "restart"]
        assert b.sink.total(TOKENS) == 30 + 20 * 500


def test_a_batch_that_was_stored_although_the_answer_was_lost_is_not_counted_twice() -> None:
    with bench() as b:
        b.scrape()
        b.engine.serve(tokens=20)
        b.sink.loses_the_answer = True
        b.scrape()
        b.sink.loses_the_answer = False
        b.engine.serve(tokens=3)
        b.scrape()
        assert b.sink.total(TOKENS) == 23
        assert [batch.sequence for batch in b.sink.batches] == [1, 2, 3]


def test_after_a_kill_the_growth_meanwhile_is_one_wide_increment() -> None:
    with bench() as b:
        b.scrape(2)
        b.kill()
        b.engine.serve(tokens=600)
        b.scrape(seconds=3600)
        grown = b.sink.increments()[TOKENS]
        assert (grown.value, grown.span_ms) == (600, 3_600_000)
        assert len(b.sink.launches()) == 1
        assert [batch.sequence for batch in b.sink.batches] == [1, 2, 3]


def test_after_a_kill_a_restart_of_the_engine_meanwhile_is_noticed() -> None:
    with bench() as b:
        b.scrape()
        b.kill()
        b.engine.restart(tokens=8000, verify_calls=3000)
        b.scrape(seconds=3600)
        assert b.sink.events() == ["launch", "restart"]
        assert b.sink.total(TOKENS, b.sink.launches()[1].key) == 8000


def test_an_unreadable_checkpoint_starts_anew_and_keeps_the_sequence() -> None:
    with bench() as b:
        b.scrape()
        identity = b.collector.collector_id
        b.sink.resumes[identity] = msgspec.structs.replace(b.sink.resumes[identity], checkpoint=b"junk")
        b.kill()
        b.scrape()
        assert b.sink.batches[-1].sequence == 2
        assert b.sink.increments() == {}


def test_another_model_behind_the_same_address_is_another_launch() -> None:
    with bench() as b:
        b.scrape()
        b.engine.model = "models/other"
        b.engine.info = restarted(b.engine.info) | {"served_model_name": "models/other"}
        b.scrape()
        assert b.sink.events() == ["launch", "restart"]
        assert b.sink.launches()[-1].served_model_name == "models/other"


def test_a_clock_that_goes_back_gives_no_negative_span_and_loses_nothing() -> None:
    with bench() as b:
        b.scrape()
        b.engine.serve(tokens=5)
        b.scrape(seconds=-3600)
        assert b.sink.increments() == {}
        assert "clock_jump" in b.sink.events()
        b.engine.serve(tokens=6)
        b.scrape()
        grown = b.sink.increments()[TOKENS]
        assert (grown.value, grown.span_ms) == (11, 5000)
        b.engine.serve(tokens=1)
        b.scrape(seconds=86_400)
        assert b.sink.increments()[TOKENS].span_ms == 86_400_000


def test_what_is_missing_is_said_with_its_remedy() -> None:
    engine = Engine(accept_length=0)
    engine.info |= {"tp_size": 8}
    with bench(engine) as b:
        b.scrape()
        missing = b.sink.health().missing
        assert "SGLANG_ENABLE_METRICS_DEVICE_TIMER=1" in missing["device time of draft and verify"]
        assert "--enable-metrics-for-all-schedulers" in missing["gauges of 7 of 8 ranks"]
        assert "5 decode steps" in missing["accept length of a log window"]
        engine.info |= {"speculative_algorithm": None}
        engine.restart()
        b.scrape(DOUBTED)
        assert "--speculative-algorithm" in b.sink.health().missing["speculative decoding"]


def test_secrets_of_the_engine_never_reach_the_sink() -> None:
    engine = Engine()
    engine.info |= {"api_key": "engine-secret-1", "launch_command": "x --admin-api-key=engine-secret-2"}
    with bench(engine, api_key="engine-secret-3") as b:
        engine.info["note"] = "called with engine-secret-3"
        b.scrape()
        stored = repr(b.sink.batches)
        assert "engine-secret" not in stored
        health: list[SourceHealth] = b.sink.all(SourceHealth)
        assert {each.state for each in health} <= {HealthState.OK, HealthState.DISABLED}
