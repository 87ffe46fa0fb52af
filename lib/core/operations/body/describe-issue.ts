import type { z } from 'zod'

export interface BodyFault {
  /** The path of the member, such as `messages[1].role`. */
  readonly param: string
  readonly message: string
}

/** Returns the fault to report: the first one, or for a union that of the best-fitting alternative. */
export function describeIssue(error: z.ZodError, prefix: readonly PropertyKey[] = []): BodyFault {
  const issue = mostSpecific(error.issues[0] as z.core.$ZodIssue)
  const path = [...prefix, ...issue.path]
  if (issue.code === 'unrecognized_keys') {
    const param = formatParam([...path, issue.keys[0] as string])
    return { param, message: `${param} is not a known member.` }
  }
  const param = formatParam(path)
  return { param, message: `${param}: ${issue.message}.`.replace(/\.\.$/, '.') }
}

/** Returns the fault of a member whose name reads like one that is judged. */
export function describeVariant(path: readonly PropertyKey[]): BodyFault {
  const param = formatParam(path)
  return {
    param,
    message: `${param} is not a known member: its name differs from one that is only in case or separators.`,
  }
}

/** Returns the deepest issue among the alternatives of a union: the value fits that alternative up to there. */
function mostSpecific(issue: z.core.$ZodIssue): z.core.$ZodIssue {
  if (issue.code !== 'invalid_union') return issue
  let best: z.core.$ZodIssue | undefined
  for (const inner of issue.errors.flat()) if (inner.path.length > (best?.path.length ?? 0)) best = inner
  if (!best) return issue
  const specific = mostSpecific(best)
  return { ...specific, path: [...issue.path, ...specific.path] }
}

function formatParam(path: readonly PropertyKey[]): string {
  let text = ''
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`
    else text += text === '' ? String(part) : `.${String(part)}`
  }
  return text.slice(0, 200)
}
