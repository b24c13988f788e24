"""The server's settings: one frozen dataclass, with what each of them may be."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from intone_server import setting_values as values


class SettingsError(Exception):
    """`faults` names every setting that is wrong, one line each."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = tuple(faults)


def _setting(default: Any, help_text: str, parse: Callable[[str], Any]) -> Any:
    return field(default=default, metadata={"help": help_text, "parse": parse})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that can be set. Each field is a flag, `--max-streams`, and an environment
    variable, `INTONE_MAX_STREAMS`; the flag wins. Times are in seconds, lengths in code points."""

    listen: str = _setting(
        "127.0.0.1:50051",
        "address to serve on: HOST:PORT or unix:PATH; port 0 takes a free one",
        values.address,
    )
    engine: str = _setting("pocket", "speech engine: pocket or builtin", str)
    model: str = _setting(
        "english",
        "pocket: a language, or a config file ending in .yaml; builtin has one model",
        str,
    )
    quantize: bool = _setting(False, "pocket: use int8 weights; faster on x86", values.boolean)
    voice: tuple[tuple[str, str], ...] = _setting(
        (),
        "pocket: add a voice NAME=FILE from a recording or an exported state; repeatable, "
        "comma-separated in the variable",
        values.voices,
    )
    default_voice: str = _setting(
        "", "voice for callers who name none; default: the model's own", str
    )
    voice_dir: str = _setting(
        "",
        "directory that keeps created voices; several servers may share it; default: none, they "
        "live in memory, up to 256 MiB",
        values.directory,
    )
    max_voices: int = _setting(
        1000,
        "most voices that can be created; one client has at most a quarter",
        values.integer(0, 1_000_000),
    )
    max_prompt_bytes: int = _setting(
        20 * 1024 * 1024,
        "longest recording or voice state in CreateVoice",
        values.integer(1, 256 * 1024 * 1024),
    )
    require_consent: bool = _setting(
        False,
        "CreateVoice needs a consent_statement, which is stored with the voice",
        values.boolean,
    )
    voice_cache_bytes: int = _setting(
        256 * 1024 * 1024,
        "most memory of a worker for voice states, beside those in use",
        values.integer(0, 1 << 40),
    )
    workers: int = _setting(
        1, "worker processes; they share one copy of the weights", values.integer(1, 64)
    )
    replicas: int = _setting(
        0,
        "generations that a worker runs at the same time; 0 or auto: the number up to 8 with "
        "which it makes the most audio, measured at start",
        values.auto(values.integer(0, 64)),
    )
    threads: int = _setting(
        0,
        "threads that a worker computes with; 0 or auto: two, of which one decodes, or one on a "
        "single core",
        values.auto(values.integer(0, 64)),
    )
    scheduling: str = _setting(
        "deadline",
        "who is spoken next: deadline, whose listener runs dry first; or fifo, in order of arrival",
        values.choice("deadline", "fifo"),
    )
    max_streams: int = _setting(
        0,
        "most calls open at the same time; 0 is 64 for each replica",
        values.integer(0, 1_000_000),
    )
    max_talking: int = _setting(
        0,
        "most calls with text waiting or being spoken; 0 or auto: as many listeners as the "
        "measured speed keeps fed, and for BATCH calls 8 for each replica",
        values.auto(values.integer(0, 1_000_000)),
    )
    drain_timeout_seconds: float = _setting(
        25.0, "how long streams may finish after SIGTERM", values.number(0, 86_400)
    )
    idle_timeout_seconds: float = _setting(
        60.0,
        "a stream without messages and with nothing to say ends after this",
        values.number(1, 86_400),
    )
    session_limit_seconds: float = _setting(
        3600.0, "longest life of a stream", values.number(1, 604_800)
    )
    first_message_timeout_seconds: float = _setting(
        10.0, "a stream must send its first message within this", values.number(0.1, 3600)
    )
    slow_client_timeout_seconds: float = _setting(
        30.0,
        "a client that reads nothing for this long, while there is audio for it, is ended",
        values.number(1, 3600),
    )
    stall_timeout_seconds: float = _setting(
        10.0, "a busy worker that is silent for this long is replaced", values.number(1, 3600)
    )
    max_text_delay_seconds: float = _setting(
        0.8,
        "default pause in the text after which unfinished text is spoken",
        values.number(0.05, 60),
    )
    max_text_characters: int = _setting(
        10_000,
        "longest text of SynthesizeText, SynthesizeFile and PlanText",
        values.integer(1, 200_000),
    )
    max_piece_characters: int = _setting(
        16_384, "longest text piece of Synthesize", values.integer(1, 200_000)
    )
    max_buffered_characters: int = _setting(
        32_768,
        "most text that waits in one stream before the server stops reading",
        values.integer(1, 1_000_000),
    )
    max_unsent_seconds: float = _setting(
        10.0,
        "most audio that waits in one stream before its next segment is spoken",
        values.number(0.1, 600),
    )
    dialogue_concurrency: int = _setting(
        3,
        "segments of one dialogue that are spoken at the same time by default",
        values.integer(1, 64),
    )
    max_dialogue_items: int = _setting(
        1000, "most items of one dialogue", values.integer(1, 100_000)
    )
    max_dialogue_characters: int = _setting(
        200_000, "longest text of all items of one dialogue", values.integer(1, 10_000_000)
    )
    max_dialogue_held_seconds: float = _setting(
        300.0, "most audio that one dialogue reuses or brings along", values.number(0, 36_000)
    )
    max_dialogue_buffer_seconds: float = _setting(
        60.0,
        "most audio that one dialogue makes before its turn, as estimated",
        values.number(0.1, 3600),
    )
    health_listen: str = _setting(
        "",
        "HOST:PORT of a second port without TLS and tokens that answers health alone, for probes",
        values.tcp_address,
    )
    metrics_listen: str = _setting(
        "", "HOST:PORT on which Prometheus finds /metrics", values.tcp_address
    )
    tls_certificate: str = _setting(
        "", "PEM file of the certificate chain; read again when it changes", values.file_path
    )
    tls_key: str = _setting("", "PEM file of the certificate's private key", values.file_path)
    tls_client_ca: str = _setting(
        "",
        "PEM file of authorities: every client must show a certificate that one of them signed",
        values.file_path,
    )
    tokens: str = _setting(
        "",
        "file of bearer tokens, as hashes, with names, scopes and limits; read again when it "
        "changes",
        values.file_path,
    )
    jwt_keys: str = _setting(
        "", "JWKS file: JWTs signed with its keys are taken as bearer tokens", values.file_path
    )
    jwt_issuer: str = _setting("", "`iss` that a JWT must have", str)
    jwt_audience: str = _setting("", "`aud` that a JWT must have", str)
    reflection: bool = _setting(
        True, "describe the services to tools; with tokens, to callers who have one", values.boolean
    )
    client_header: str = _setting(
        "",
        "metadata key that a trusted proxy sets, by whose last value clients without a token are "
        "told apart, such as x-forwarded-for; default: by address",
        values.metadata_key,
    )
    max_client_streams: int = _setting(
        0, "most calls that one client has open; 0: no limit", values.integer(0, 1_000_000)
    )
    max_client_characters_per_minute: int = _setting(
        0, "most text that one client sends in a minute; 0: no limit", values.integer(0, 10**9)
    )
    max_client_audio_seconds_per_day: int = _setting(
        0, "most audio that one client gets in 24 hours; 0: no limit", values.integer(0, 10**9)
    )
    max_client_heavy_calls: int = _setting(
        0,
        "most calls of CreateVoice, ExportVoice and PlanText that one client has open; 0: no limit",
        values.integer(0, 1_000_000),
    )
    otlp_endpoint: str = _setting(
        "",
        "URL of an OpenTelemetry collector that takes traces over gRPC (OTLP)",
        values.endpoint,
    )
    channelz: bool = _setting(False, "serve grpc.channelz.v1, for debugging", values.boolean)
    debug_signal: bool = _setting(
        False,
        "SIGUSR2 writes to the log where workers and streams are, for debugging",
        values.boolean,
    )
    log_format: str = _setting(
        "auto",
        "json, text, or auto: text on a terminal, else json",
        values.choice("auto", "json", "text"),
    )


def contradictions(settings: Settings, engines: Sequence[str]) -> list[str]:
    """What is wrong with settings that are each right: one line for each fault."""
    if settings.engine not in engines:
        return [f"--engine={settings.engine}: must be one of {', '.join(engines)}"]
    return [*_tls_faults(settings), *_access_faults(settings), *_model_faults(settings)]


def _tls_faults(settings: Settings) -> list[str]:
    if bool(settings.tls_certificate) != bool(settings.tls_key):
        return ["--tls-certificate and --tls-key: give both or none"]
    if settings.tls_client_ca and not settings.tls_certificate:
        return ["--tls-client-ca: needs --tls-certificate and --tls-key"]
    return []


def _access_faults(settings: Settings) -> list[str]:
    faults = []
    if settings.jwt_keys and not (settings.jwt_issuer and settings.jwt_audience):
        faults.append("--jwt-keys: needs --jwt-issuer and --jwt-audience, which tokens must name")
    if not settings.jwt_keys and (settings.jwt_issuer or settings.jwt_audience):
        faults.append("--jwt-issuer and --jwt-audience: are of no use without --jwt-keys")
    return faults


def _model_faults(settings: Settings) -> list[str]:
    if settings.engine != "pocket" or not settings.model.endswith((".yaml", ".yml")):
        return []
    faults = []
    if not Path(settings.model).is_file():
        faults.append(f"--model={settings.model}: no such file")
    if settings.default_voice not in [name for name, _ in settings.voice]:
        faults.append(
            "--default-voice: a config file has no voices of its own; "
            "give --voice NAME=FILE and --default-voice NAME"
        )
    return faults
