"""Alignment: when each of a given sequence of events begins in a recording."""

from olx.alignment.align import align as align
from olx.alignment.align import mean_deviation as mean_deviation
from olx.alignment.align import off_by as off_by
from olx.alignment.bands import log_mel as log_mel
from olx.alignment.bands import semitones as semitones
from olx.alignment.music import Score as Score
from olx.alignment.music import music_recording as music_recording
from olx.alignment.recording import Recording as Recording
from olx.alignment.recording import Weights as Weights
from olx.alignment.recording import aligned_rounds as aligned_rounds
from olx.alignment.speech import Lengths as Lengths
from olx.alignment.speech import phone_lengths as phone_lengths
from olx.alignment.speech import speech_recording as speech_recording
