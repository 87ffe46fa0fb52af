import type { Endpoint } from './endpoint.ts'

const METHODS = ['get', 'post', 'put', 'patch', 'delete'] as const

/** Returns the endpoints of pass-through rules: every method of each path, with `*rest` and `:name` as parameters. */
export function passThroughEndpoints(rules: readonly { readonly path: string }[]): Endpoint[] {
  return rules.flatMap(({ path }) => {
    const templated = path.replaceAll(/[:*](\w+)/g, '{$1}').replaceAll(/\{\/(\{\w+\})\}/g, '/$1')
    return METHODS.map((method) => ({
      id: `${method}${templated.replaceAll(/\W+(\w?)/g, (_, letter: string) => letter.toUpperCase())}`,
      method,
      path: templated,
      tag: 'Passed on',
      summary: `Passed on unread: ${method.toUpperCase()} ${path}`,
      answers: [{ status: 200, description: 'As the upstream answers.', media: ['*/*'] }],
    }))
  })
}
