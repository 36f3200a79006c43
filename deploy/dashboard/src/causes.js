// What an error's name means to an operator: whose fault it is and what happens by itself. The names are the fleet's stable codes.
const CAUSES = {
  E_FORMAT: "The job: its bytes are not what they should be. Refused for good.",
  E_RANGE: "The job: a number in it is too large. Refused for good.",
  E_CURVE: "The job: a point or scalar is not on its curve or in its field. Refused for good.",
  E_UNSAT: "The job: its witness does not satisfy the circuit. Refused for good.",
  E_LIMIT: "Load: it needs more memory than the lane had. Placed elsewhere.",
  E_QUEUE: "Load: a queue was full. Placed elsewhere.",
  E_DEVICE: "The machine: its device computed wrongly or reported an error. Placed elsewhere; several of these fence the lane.",
  E_DEVICE_LOST: "The machine: its device is gone. The lane starts anew.",
  E_SELFCHECK: "A proof failed its check and was not sent. Computed again elsewhere, which tells whose fault it is.",
  E_IO: "The surroundings: a file could not be read or written. Tried again.",
  E_NET: "The surroundings: the server could not be reached. Tried again.",
  E_TIMEOUT: "The surroundings: something took too long. Tried again.",
  E_CANCELLED: "The asker cancelled it.",
  E_DEADLINE: "Its deadline passed before it was done.",
  E_INTERNAL: "A mistake in Bellows. Please report it with the log.",
};

export const causeOf = (name) => CAUSES[name] ?? "";
