import type { GatewayConfig } from 'express-model-gateway'
import { loadOptional, missingPackages } from './optional-packages.ts'

const PACKAGES = {
  google: { names: 'google-auth-library', load: () => import('google-auth-library') },
  aws: {
    names: '@smithy/signature-v4 @aws-sdk/credential-provider-node',
    load: () => Promise.all([import('@smithy/signature-v4'), import('@aws-sdk/credential-provider-node')]),
  },
} as const

/** @throws {ConfigError} if a line needs packages that are not installed. */
export async function requireLinePackages({ catalog }: GatewayConfig): Promise<void> {
  for (const [i, { credential }] of catalog.lines.entries()) {
    if (!credential || credential.kind === 'oauth') continue
    const { names, load } = PACKAGES[credential.kind]
    if (!(await loadOptional<unknown>(load)))
      throw missingPackages(`lines[${i}].apiKey.${credential.kind}`, names)
  }
}
