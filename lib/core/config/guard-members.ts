import { z } from 'zod'

function isPattern(text: string): boolean {
  try {
    return new RegExp(text, 'u') instanceof RegExp
  } catch {
    return false
  }
}

const expressions = z
  .array(z.string().refine(isPattern, { error: 'must be a regular expression' }))
  .default([])

/** A guard of the config: what it checks, for whom, and how. */
const guard = z
  .strictObject({
    name: z.string().min(1).max(64).describe('Its name in the call log and in metrics.'),
    keys: z
      .array(z.string().min(1))
      .min(1)
      .optional()
      .describe('The keys whose calls it checks. Absent: all.'),
    input: z.boolean().default(true).describe('Whether it checks what callers send.'),
    output: z.boolean().default(true).describe('Whether it checks what they are answered.'),
    patterns: z
      .strictObject({
        refuse: expressions,
        mask: expressions,
        replacement: z.string().optional().describe('The text that replaces a match. Absent: [removed].'),
        reason: z.string().min(1).optional().describe('The reason that callers read in a refusal.'),
      })
      .refine(({ refuse, mask }) => refuse.length + mask.length > 0, { error: 'needs "refuse" or "mask"' })
      .optional(),
    moderation: z
      .strictObject({
        line: z.string().min(1).describe('The line whose /moderations is asked.'),
        model: z.string().min(1).optional(),
      })
      .optional(),
    windowChars: z.int().min(1).default(500).describe('After how many characters a stream is checked.'),
    timeoutMs: z.int().min(1).max(600_000).default(5000),
    onError: z
      .enum(['refuse', 'allow'])
      .default('refuse')
      .describe('Whether a text that cannot be checked is refused or passes.'),
  })
  .refine(({ patterns, moderation }) => (patterns === undefined) !== (moderation === undefined), {
    error: 'needs either "patterns" or "moderation"',
  })
  .refine(({ input, output }) => input || output, { error: 'must check "input" or "output"' })

export const guardMembers = {
  guards: z.array(guard).default([]).describe('The checks of requests and answers, in this order.'),
}
