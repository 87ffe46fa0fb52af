import type { GatewayConfig } from 'express-model-gateway'
import { loadOptional, missingPackages } from './optional-packages.ts'

const PACKAGES = {
  google: { names: 'google-auth-library', load: () => import('google-auth-library') },
  aws: {
    names: '@smithy/signature-v4 @aws-sdk/credential-provider-node',
    load: () => Promise.all([import('@smithy/signature-v4'), import('@aws-sdk/credential-provider-node')]),
  },
  s3: {
    names: '@aws-sdk/client-s3 @aws-sdk/lib-storage',
    load: () => Promise.all([import('@aws-sdk/client-s3'), import('@aws-sdk/lib-storage')]),
  },
} as const

/** @throws {ConfigError} if a member of the config needs packages that are not installed. */
export async function requireConfigPackages({ catalog, retention }: GatewayConfig): Promise<void> {
  for (const [i, { credential }] of catalog.lines.entries())
    if (credential && credential.kind !== 'oauth')
      await requirePackages(`lines[${i}].apiKey.${credential.kind}`, credential.kind)
  if (retention.export?.to.startsWith('s3:')) await requirePackages('retention.export', 's3')
}

async function requirePackages(setting: string, kind: keyof typeof PACKAGES): Promise<void> {
  const { names, load } = PACKAGES[kind]
  if (!(await loadOptional<unknown>(load))) throw missingPackages(setting, names)
}
