import { GatewayError } from '../../errors/index.ts'
import { parseExactly } from '../../json/index.ts'
import { describeIssue } from './describe-issue.ts'
import {
  type ProviderConstraint,
  providerConstraintSchema,
  toProviderConstraint,
} from './provider-constraint.ts'

/** A provider constraint as the caller sent it. */
interface GivenConstraint {
  readonly provider: unknown
  /** The name that error messages use for it. */
  readonly source: 'provider' | 'X-Gateway-Provider'
}

/** Returns the body's `provider`, or else the header, which is for SDKs that reject unknown members. */
export function givenConstraint(
  member: unknown,
  header: string | string[] | undefined,
): GivenConstraint | undefined {
  if (member !== undefined && member !== null) return { provider: member, source: 'provider' }
  return header === undefined ? undefined : { provider: parseHeader(header), source: 'X-Gateway-Provider' }
}

/** The most bytes of a provider constraint as JSON: the log entry of the call keeps it. */
const MAX_CONSTRAINT_BYTES = 4096

export function constraintOf({ provider, source }: GivenConstraint): ProviderConstraint {
  const checked = providerConstraintSchema.safeParse(provider)
  if (!checked.success) throw new GatewayError('invalid_request', describeIssue(checked.error, [source]))
  if (Buffer.byteLength(JSON.stringify(provider)) > MAX_CONSTRAINT_BYTES) throw tooLong(source)
  return toProviderConstraint(checked.data)
}

function tooLong(param: GivenConstraint['source']): GatewayError {
  return new GatewayError('invalid_request', {
    param,
    message: `The provider constraint is longer than ${MAX_CONSTRAINT_BYTES} bytes. Name fewer providers, lines or regions.`,
  })
}

function parseHeader(header: string | string[]): unknown {
  const text = String(header)
  if (text.length > MAX_CONSTRAINT_BYTES) throw tooLong('X-Gateway-Provider')
  try {
    return parseExactly(text)
  } catch {
    throw new GatewayError('invalid_request', {
      param: 'X-Gateway-Provider',
      message: 'The header X-Gateway-Provider must hold a JSON object.',
    })
  }
}
