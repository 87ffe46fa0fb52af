/** Numbers that a text names. */
export interface ReasonNumbers {
  /** Tokens of the input. */
  readonly input?: number | undefined
  /** Tokens of output that the request asks for. */
  readonly output?: number | undefined
  /** The most that the model takes, in the unit of the reason. */
  readonly limit: number
}

/** Why a request was refused, if clients act on the reason. */
export interface ErrorReason {
  readonly kind: ReasonKind
  /** The gateway's estimate and limits, or what an upstream counted. Without them a text names no numbers. */
  readonly numbers?: ReasonNumbers | undefined
}

/** The texts of one reason. */
interface Phrases {
  /** For `/v1/messages`. */
  anthropic(numbers?: ReasonNumbers): string
  /** For all other paths. */
  openai(numbers?: ReasonNumbers): string
}

/** So many tokens of output are too few to go on with: an agent that gets fewer shortens its input instead. */
const LEAST_OUTPUT = 4096

/**
 * The texts that clients act on. An agent compacts its context, lowers `max_tokens`, or leaves out thinking blocks,
 * images or settings only if it reads a phrase that it knows, and only in the form of its protocol. `error.code` is
 * that of the service, so a code that clients look for stands in the text. Only figures change in a phrase; without
 * figures, clients still know the forms below except where a comment says otherwise.
 */
export const CLIENT_PHRASES = {
  context: {
    anthropic(numbers) {
      const known = exceeded(numbers)
      if (!known)
        return 'prompt is too long. Shorten the input, or choose a model with a larger context window.'
      const { input, output, limit } = known
      const kept = Math.min(output, LEAST_OUTPUT, Math.floor(limit / 2))
      // Claude Code lowers `max_tokens` after the second form, and gives up if too little is left. It compacts its
      // context after the first one.
      if (input + kept > limit) return `prompt is too long: ${input} tokens > ${limit - kept} maximum`
      return `input length and \`max_tokens\` exceed context limit: ${input} + ${output} > ${limit}, decrease input length or max_tokens (context_length_exceeded)`
    },
    openai(numbers) {
      const known = exceeded(numbers)
      if (!known)
        return "The input exceeds the context window (context_length_exceeded): it is longer than the model's context length. Please reduce the length of the messages, or ask for less output."
      const { input, output, limit } = known
      const parts = output > 0 ? ` (${input} in the messages, ${output} in the completion)` : ''
      return `This model's maximum context length is ${limit} tokens, but you requested ${input + output} tokens${parts}. Please reduce the length of the messages or completion (context_length_exceeded).`
    },
  },
  output_limit: {
    // No client is known to act on it without figures.
    anthropic: (numbers) =>
      numbers?.output === undefined
        ? 'max_tokens is above the maximum number of output tokens of this model. Lower it.'
        : `max_tokens: ${numbers.output} > ${numbers.limit}, which is the maximum allowed number of output tokens for this model`,
    openai: (numbers) =>
      numbers?.output === undefined
        ? 'max_tokens is too large for this model. Lower it.'
        : `max_tokens is too large: ${numbers.output}. This model supports at most ${numbers.limit} completion tokens.`,
  },
  thinking_signature: {
    anthropic: () =>
      'Invalid `signature` in `thinking` block. Send the conversation without its thinking blocks.',
    openai: () =>
      'The signature of the reasoning could not be verified (invalid_encrypted_content). Send the conversation without its reasoning.',
  },
  thinking_enabled: {
    anthropic: () =>
      'thinking.type.enabled is not supported for this model. Use another type, or leave it out.',
    openai: () => 'The model does not support this reasoning setting. Use another one, or leave it out.',
  },
  thinking_adaptive: {
    anthropic: () =>
      'thinking.type.adaptive is not supported for this model. Use another type, or leave it out.',
    openai: () => 'The model does not support adaptive reasoning. Use another setting, or leave it out.',
  },
  effort: {
    anthropic: () => 'This model does not support the effort parameter. Leave it out.',
    openai: () => 'This model does not support the effort parameter. Leave it out.',
  },
  image_invalid: {
    anthropic: () => 'Could not process image. Leave it out, or send it in another format.',
    openai: () =>
      'The image data you provided does not represent a valid image. Leave it out, or send it in another format.',
  },
  image_too_large: {
    anthropic: () => 'image exceeds the maximum size of this model. Send a smaller one.',
    openai: () => 'An image exceeds the maximum size of this model. Send a smaller one.',
  },
  image_dimensions: {
    anthropic: () =>
      'image dimensions exceed the maximum of many-image requests. Send smaller ones, or fewer.',
    openai: () => 'The dimensions of an image exceed the maximum of this model. Send smaller ones, or fewer.',
  },
  too_much_media: {
    anthropic: () => 'too much media: the request has too many images or documents. Leave out some of them.',
    openai: () => 'The request has too many images or documents. Leave out some of them.',
  },
  pdf_invalid: {
    anthropic: () => 'Could not process PDF. Leave it out, or send its text.',
    openai: () => 'A PDF could not be read. Leave it out, or send its text.',
  },
  pdf_pages: {
    // Claude Code knows it without the number, too, but says less about it.
    anthropic: (numbers) => `${pagesOf(numbers)} may be provided. Send fewer, or their text.`,
    openai: (numbers) => `${pagesOf(numbers)} may be provided. Send fewer, or their text.`,
  },
  pdf_password: {
    anthropic: () => 'The PDF specified is password protected. Send it without its password.',
    openai: () => 'The PDF specified is password protected. Send it without its password.',
  },
  credit: {
    anthropic: () =>
      'Your credit balance is too low for this request. Top up the account; the amounts are in the call log.',
    openai: () =>
      'Your credit balance is too low for this request (insufficient_quota). Top up the account; the amounts are in the call log.',
  },
} as const satisfies Record<string, Phrases>

/** A reason that clients act on. */
export type ReasonKind = keyof typeof CLIENT_PHRASES

/** The codes that always have the same reason. */
const KIND_BY_CODE: Readonly<Record<string, ReasonKind>> = {
  context_too_long: 'context',
  insufficient_balance: 'credit',
}

/** Returns the reason that a code has by itself; undefined if it has none. */
export function reasonOfCode(code: string): ErrorReason | undefined {
  const kind = Object.hasOwn(KIND_BY_CODE, code) ? KIND_BY_CODE[code] : undefined
  return kind === undefined ? undefined : { kind }
}

/** Returns the text of a reason in one form. */
export function phraseOf({ kind, numbers }: ErrorReason, form: keyof Phrases): string {
  const phrases: Phrases = CLIENT_PHRASES[kind]
  return phrases[form](numbers)
}

/** The numbers of a context that is too long. */
interface ContextNumbers {
  readonly input: number
  readonly output: number
  readonly limit: number
}

/** Returns the numbers of a context that is too long; undefined if they are unknown or contradict it. */
function exceeded(numbers: ReasonNumbers | undefined): ContextNumbers | undefined {
  if (numbers?.input === undefined) return undefined
  const { input, output = 0, limit } = numbers
  return input + output > limit ? { input, output, limit } : undefined
}

function pagesOf(numbers: ReasonNumbers | undefined): string {
  return numbers ? `A maximum of ${numbers.limit} PDF pages` : 'Fewer PDF pages'
}
