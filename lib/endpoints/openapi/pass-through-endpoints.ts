import type { Endpoint } from './endpoint.ts'

const METHODS = ['get', 'post', 'put', 'patch', 'delete'] as const

/** A rule, as far as the document tells of it. */
export interface DocumentedRule {
  readonly path: string
  readonly methods?: readonly string[] | undefined
}

/** Returns the endpoints of pass-through rules: the methods of each path, with `*rest` and `:name` as parameters. */
export function passThroughEndpoints(rules: readonly DocumentedRule[]): Endpoint[] {
  return rules.flatMap(({ path, methods }) => {
    const templated = path.replaceAll(/[:*](\w+)/g, '{$1}').replaceAll(/\{\/(\{\w+\})\}/g, '/$1')
    const served = METHODS.filter((method) => methods?.includes(method.toUpperCase()) ?? true)
    return served.map((method) => ({
      id: `${method}${templated.replaceAll(/\W+(\w?)/g, (_, letter: string) => letter.toUpperCase())}`,
      method,
      path: templated,
      tag: 'Passed on',
      summary: `Passed on unread: ${method.toUpperCase()} ${path}`,
      answers: [{ status: 200, description: 'As the upstream answers.', media: ['*/*'] }],
    }))
  })
}
