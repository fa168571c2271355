"""Alignment: when each of a given sequence of events begins in a recording."""

from olx.alignment.align import align as align
from olx.alignment.align import mean_deviation as mean_deviation
from olx.alignment.align import off_by as off_by
from olx.alignment.features import Lengths as Lengths
from olx.alignment.features import Score as Score
from olx.alignment.features import log_mel as log_mel
from olx.alignment.features import music_recording as music_recording
from olx.alignment.features import phone_lengths as phone_lengths
from olx.alignment.features import semitones as semitones
from olx.alignment.features import speech_recording as speech_recording
from olx.alignment.recording import Recording as Recording
from olx.alignment.recording import Weights as Weights
from olx.alignment.recording import aligned_rounds as aligned_rounds
